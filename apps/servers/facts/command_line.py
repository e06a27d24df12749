"""What a llama-server's command line says of its slots (pure).

A router shows the arguments of its models and llama-swap the command of those that run. The text
itself is never kept: it may hold a key or a path.
"""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

# What llama-server does when -np is not given: so many slots that share one KV cache.
AUTO_SLOTS = 4
# The context of a slot is rounded up to a multiple of this.
SLOT_PADDING = 256

_CONTINUED = re.compile(r"\\\r?\n")
_ENVIRONMENT = {
    "LLAMA_ARG_N_PARALLEL": "--parallel",
    "LLAMA_ARG_CTX_SIZE": "--ctx-size",
}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Slots and KV cache of one llama-server."""

    slots: int
    unified: bool
    """Whether all slots share one KV cache: so it is when -np is not given."""
    context: int | None
    """Tokens one slot holds; None: as many as the model was trained for."""
    pool: int | None
    """Tokens of the shared KV cache, where it is shared and its size is given."""
    embeddings: bool
    slot_files: bool
    """Whether it saves slots as files: `--slot-save-path`."""
    fingerprint: str
    """Tells whether it is still the same command."""


def parse(command: str | Sequence[str]) -> CommandLine | None:
    """Reads a command, or its arguments. None: another program, whose defaults are not known.

    Args:
        command: a shell's text (llama-swap), or the arguments one by one (router).
    """
    words = _words(command) if isinstance(command, str) else list(command)
    if not words or (isinstance(command, str) and not _is_llama_server(words)):
        return None
    options = _options(words)
    given = _number(options, "-np", "--parallel", "--n-parallel")
    explicit = given is not None and given > 0
    slots = given if given is not None and given > 0 else AUTO_SLOTS
    unified = not explicit
    if {"-kvu", "--kv-unified"} & options.keys():
        unified = True
    if {"-no-kvu", "--no-kv-unified"} & options.keys():
        unified = False
    total = _number(options, "-c", "--ctx-size") or None
    per_slot = _number(options, "--kv-unified-per-slot") or None
    context: int | None
    pool: int | None
    if per_slot is not None:
        unified, context, pool = True, per_slot, total or slots * per_slot
    elif unified:
        context, pool = total, total
    else:
        context, pool = total and _padded(total, slots), None
    return CommandLine(
        slots=slots,
        unified=unified,
        context=context,
        pool=pool,
        embeddings=bool({"--embedding", "--embeddings"} & options.keys()),
        slot_files="--slot-save-path" in options,
        fingerprint=hashlib.sha256("\0".join(words).encode()).hexdigest()[:16],
    )


def parse_preset(text: str) -> int | None:
    """Slots in a router's preset, whose lines are `parallel = 4` or `LLAMA_ARG_N_PARALLEL = 4`."""
    found = re.search(
        r"^\s*(?:np|parallel|n-parallel|LLAMA_ARG_N_PARALLEL)\s*=\s*(\d+)\s*$", text, re.MULTILINE
    )
    return int(found[1]) or None if found else None


def _padded(total: int, slots: int) -> int:
    share = -(-total // slots)
    return -(-share // SLOT_PADDING) * SLOT_PADDING


def _words(command: str) -> list[str]:
    text = _CONTINUED.sub(" ", command)
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an open quote: better the words as they stand than none
        words = text.split()
    # bash -c "llama-server -np 4"
    return [part for word in words for part in (word.split() if "llama-" in word else [word])]


def _is_llama_server(words: list[str]) -> bool:
    return any(
        "llama-server" in PurePath(word).name or "llama.cpp" in word or word == "llama"
        for word in words
    )


def _options(words: list[str]) -> dict[str, str]:
    """Each option and the word after it, also `--option=value` and `LLAMA_ARG_X=value`."""
    options: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in _ENVIRONMENT and equals:
            options.setdefault(_ENVIRONMENT[name], value)
        elif word.startswith("-"):
            options[name] = value if equals else following
    return options


def _number(options: dict[str, str], *names: str) -> int | None:
    for name in names:
        if re.fullmatch(r"-?\d+", options.get(name, "")):
            return int(options[name])
    return None
