"""Finds the hardware of the planner's table by the name that a driver gives a GPU. Pure."""

import re

from apps.tuning.planner.hardware import HARDWARE, Hardware, Kind

# Makers, families and kinds of memory, which the table leaves out or has in another form.
_MAKERS = {"nvidia", "geforce", "tesla", "amd", "radeon", "intel", "instinct", "graphics"}
_LEFT_OUT = _MAKERS | {"generation", "blackwell", "workstation", "server", "edition", "gb"}
_MEMORY = re.compile(r"\d+(gb)?|hbm\w*|sxm\d?|pcie")
# Slower than their name says: of a laptop, or a part of a GPU.
_OTHERS = frozenset({"laptop", "mobile", "mig", "max", "grid"})
NEAREST = 0.1


def find_gpu(name: str, memory_mib: int) -> Hardware | None:
    """Return the entry of the table; None where none is this GPU for certain.

    Args:
        name: such as "NVIDIA GeForce RTX 4090".
        memory_mib: all of it, which tells models of one name apart.
    """
    words = _words(name)
    if not _OTHERS.isdisjoint(words):
        return None
    found = [
        known
        for known in HARDWARE.values()
        if known.kind is Kind.GPU
        and _essence(_words(known.name)) == _essence(words)
        and abs(memory_mib / 1024 - known.memory_gib) <= NEAREST * known.memory_gib
    ]
    if len(found) > 1:  # the same GPU on a card and on a board
        is_card = "pcie" in words
        found = [known for known in found if ("pcie" in _words(known.name)) == is_card]
    return found[0] if len(found) == 1 else None


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


def _essence(words: list[str]) -> list[str]:
    """The words that name the GPU: numbers of a model follow letters, those of memory do not."""
    kept = [word for word in words if word not in _LEFT_OUT]
    return [word for place, word in enumerate(kept) if not _is_memory(word, place, kept)]


def _is_memory(word: str, place: int, words: list[str]) -> bool:
    is_model = place > 0 and words[place - 1] in {"rtx", "rx", "arc", "pro"}
    return not is_model and _MEMORY.fullmatch(word) is not None
