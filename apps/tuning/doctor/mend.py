"""The command line of a server as it is, and as findings propose it. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from apps.tuning.importing.flag_table import Argument, FlagTable

Part = tuple[str, ...]
"""A flag and its values; or the program."""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the difference."""

    sign: str
    """ "+" is to be added, "-" removed, " " stays."""
    text: str


@dataclass(frozen=True, slots=True)
class Mend:
    """What to start a server with instead."""

    changes: list[Change]
    command: str
    """A line each flag; only the proposed flags where the server does not report its own."""
    is_complete: bool
    """False where the server does not report its command line."""


def propose(command: str, flags: Sequence[str], table: FlagTable) -> Mend | None:
    """Return the mended command; None if no flag mends it.

    Args:
        command: as the server reports it, "" if it does not.
        flags: proposed, such as "-c 8192". Of one that is proposed twice the last counts.
    """
    proposed = _last_of_each([_words(flag) for flag in flags], table)
    if not proposed:
        return None
    words = _words(command)
    parts = list(_parts(words, table))
    replaced = {_identity(part[0], table) for part in proposed}
    stays = [part for part in parts if _identity(part[0], table) not in replaced]
    changes = [
        *(Change(" " if part in stays or part in proposed else "-", _text(part)) for part in parts),
        *(Change("+", _text(part)) for part in proposed if part not in parts),
    ]
    lines = map(_text, [*stays, *proposed])
    return Mend(changes, " \\\n  ".join(lines), is_complete=bool(words))


def _words(text: str) -> Part:
    try:
        return tuple(word for word in shlex.split(text.replace("\\\n", " ")) if word.strip())
    except ValueError:  # a quotation mark that is not closed, where the line was cut
        return tuple(text.split())


def _parts(words: Part, table: FlagTable) -> Iterator[Part]:
    """The program, then each flag with its values."""
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    if first:
        yield words[:first]
    while first < len(words):
        name, _, joined = words[first].partition("=")
        argument = table.find(name)
        values = 0 if joined else _values_of(argument, words[first + 1 :])
        yield words[first : first + 1 + values]
        first += 1 + values


def _values_of(argument: Argument | None, rest: Part) -> int:
    if argument is not None:
        return min(argument.values, len(rest))
    # Of a flag that this build does not know, what does not look like the next one.
    return int(bool(rest) and not rest[0].startswith("-"))


def _identity(word: str, table: FlagTable) -> str:
    """The same for all names of a flag."""
    name = word.partition("=")[0]
    argument = table.find(name)
    return argument.names[0] if argument is not None else name


def _last_of_each(parts: Iterable[Part], table: FlagTable) -> list[Part]:
    by_flag = {_identity(part[0], table): part for part in parts if part}
    return list(by_flag.values())


def _text(part: Part) -> str:
    return " ".join(word if "•" in word else shlex.quote(word) for word in part)
