"""The arguments of a written server, each with what the build says of it, and what is wrong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apps.tuning.importing.flag_table import Argument, FlagTable
from apps.tuning.importing.written import WrittenServer
from apps.tuning.planner.kv_cache import TYPES

NUMBERS = {"--ctx-size", "--parallel", "--ubatch-size", "--batch-size", "--kv-unified-per-slot"}
_NUMBER = re.compile(r"-?\d{1,9}")
_SECRET = re.compile(r"api.?key$|token$|^-hft$", re.IGNORECASE)
HIDDEN = "••••"
MAX_SHOWN = 200
# What a router takes for no; all else is yes.
_FALSE = {"false", "off", "0", "disabled"}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    """As it was written."""
    value: str | None
    argument: Argument | None
    """None: this build knows no such name."""
    problem: str | None = None

    @property
    def safe_text(self) -> str:
        """Name and value for a page: no key, no endless text."""
        name = self.name.partition("=")[0][:MAX_SHOWN]
        if self.value is None:
            return name
        return f"{name} {HIDDEN if _SECRET.search(name) else self.value[:MAX_SHOWN]}"

    @property
    def meaning(self) -> str:
        return self.argument.meaning if self.argument else ""


@dataclass(frozen=True, slots=True)
class Settings:
    all: tuple[Setting, ...]

    def value(self, name: str) -> str | None:
        """The last value given under any name of this argument; None: not given, or not usable."""
        found = [setting.value for setting in self._of(name) if setting.problem is None]
        return found[-1] if found else None

    def number(self, name: str) -> int | None:
        value = self.value(name)
        return None if value is None else int(value)

    def has(self, name: str) -> bool:
        return any(setting.problem is None for setting in self._of(name))

    def last_name(self, name: str) -> str | None:
        """The one of an argument's names that was written last: `--x` or `--no-x`."""
        names = [setting.name for setting in self._of(name)]
        return names[-1] if names else None

    def _of(self, name: str) -> Iterator[Setting]:
        for setting in self.all:
            if setting.argument is not None and name in setting.argument.names:
                yield setting


def read_settings(server: WrittenServer, table: FlagTable) -> Settings:
    read = _of_ini if server.from_ini else _of_words
    return Settings(tuple(read(server.words, table)))


def _of_ini(words: tuple[str, ...], table: FlagTable) -> Iterator[Setting]:
    for word in words:
        key, _, value = word.partition("=")
        names = (f"--{key}", f"-{key}", key)
        name = next((name for name in names if name in table.arguments), names[0])
        argument = table.arguments.get(name)
        if key.startswith("-"):
            yield Setting(key, value, None, f"{key}: a key of the INI begins without dashes.")
        elif argument is None or argument.values:
            yield _checked(name, value, argument, table)
        else:
            yield _switch(name, argument, value)


def _switch(name: str, argument: Argument, value: str) -> Setting:
    """The flag that a router makes of `name = value`: `--x`, `--no-x` or none."""
    negative = next((other for other in argument.names if other.startswith("--no-")), None)
    is_negative = name.startswith(("--no-", "-no-")) and argument.name != negative
    if (value in _FALSE) == is_negative:
        return Setting(argument.name if is_negative else name, None, argument)
    if negative is None or argument.name == negative:
        return Setting(name, value, None)
    return Setting(negative, None, argument)


def _of_words(words: tuple[str, ...], table: FlagTable) -> Iterator[Setting]:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, value = word.partition("=")
        if name.startswith("LLAMA_") and equals:
            yield _checked(name, value, table.find(name), table)
            continue
        argument = table.find(word)
        wanted = argument.values if argument else int(word.startswith("-"))
        given: list[str] = []
        while len(given) < wanted and index < len(words) and not _is_flag(words[index], table):
            given.append(words[index])
            index += 1
        yield _checked(word, " ".join(given) if given else None, argument, table)


def _is_flag(word: str, table: FlagTable) -> bool:
    return table.find(word) is not None or re.match(r"--?[A-Za-z]", word) is not None


def _checked(name: str, value: str | None, argument: Argument | None, table: FlagTable) -> Setting:
    return Setting(name, value, argument, _problem(name, value, argument, table))


def _problem(
    name: str, value: str | None, argument: Argument | None, table: FlagTable
) -> str | None:
    if argument is None:
        return _unknown(name, table)
    if argument.removed:
        return f"{name}: {argument.meaning}."
    if argument.values and value is None:
        return f"{name} needs a value."
    if argument.name in NUMBERS and not _NUMBER.fullmatch(value or ""):
        return f"{name} needs a whole number, not “{(value or '')[:MAX_SHOWN]}”."
    if argument.name in {"--cache-type-k", "--cache-type-v"} and value not in TYPES:
        return f"{name} must be one of {', '.join(TYPES)}."
    return None


def _unknown(name: str, table: FlagTable) -> str:
    shown = name[:MAX_SHOWN]
    if not name.startswith(("-", "LLAMA_")):
        return f"“{shown}” stands where a flag is expected."
    flag, equals, _ = name.partition("=")
    if equals and table.find(flag):
        return f"{flag}: write a space in place of “=”."
    instead = table.instead_of(name)
    if name.startswith("LLAMA_"):
        said = f"{shown} is not read by llama-server"
    else:
        said = f"{shown} is unknown to llama-server, which ends when it is given"
    return f"{said}. Use {instead}." if instead else f"{said}. Leave it out."
