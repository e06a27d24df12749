"""Why prompts may not be found in the cache, as far as the command or the model tells. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from apps.tuning.doctor.reading import Reading

SIMILARITY = frozenset({"-sps", "--slot-prompt-similarity"})
CACHE_RAM = frozenset({"-cram", "--cache-ram"})
CHECKPOINTS = frozenset({"-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"})
CACHE_REUSE = frozenset({"--cache-reuse"})
# A slot is chosen by its prompt only if more than this share is the same: hardly ever.
HIGH_SIMILARITY = 0.9


@dataclass(frozen=True, slots=True)
class Reason:
    text: str
    flag: str


def cache_reasons(reading: Reading) -> list[Reason]:
    """Return what the running command and the model's file name as reasons."""
    return [*_of_command(reading.command), *_of_model(reading)]


def value_of(command: str, names: frozenset[str]) -> str:
    """The last value of a flag in a command line; "": it has none."""
    words = command.replace("=", " ").split()
    return next((value for name, value in reversed([*pairwise(words)]) if name in names), "")


def _of_command(command: str) -> Iterator[Reason]:
    if "--no-cache-prompt" in command.split():
        yield Reason("The command has --no-cache-prompt.", "--cache-prompt")
    similarity = value_of(command, SIMILARITY)
    if _number(similarity) > HIGH_SIMILARITY:
        yield Reason(
            f"The command has -sps {similarity}: a request takes the slot of its earlier prompt "
            "only if more than this share is the same.",
            "-sps 0.1",
        )
    if value_of(command, CACHE_RAM) == "0":
        yield Reason(
            "The command has --cache-ram 0: the prompt of a slot is lost when another takes it.",
            "--cache-ram 8192",
        )


def _of_model(reading: Reading) -> Iterator[Reason]:
    shape = reading.shape
    if shape is None:
        return
    has_checkpoints = value_of(reading.command, CHECKPOINTS) != "0"
    if shape.sliding_window and "--swa-full" not in reading.command.split():
        yield Reason(
            f"The model has a sliding window of {shape.sliding_window:,} tokens: what is older is "
            "not kept, so a prompt cannot go on from there"
            + ("." if has_checkpoints else ", and --ctx-checkpoints 0 keeps no copies."),
            "--swa-full" if has_checkpoints else "--ctx-checkpoints 32",
        )
    if shape.state_bytes:
        text = "The model has recurrent layers, which cannot go back to an earlier place."
        yield Reason(text, "--ctx-checkpoints 32")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
