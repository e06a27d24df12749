"""Finds the llama-servers in a pasted command, router INI or llama-swap YAML (pure)."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from apps.tuning.errors import PlanError
from apps.tuning.importing.yaml_text import read_yaml

MAX_CHARACTERS = 65_536
MAX_SERVERS = 64
MAX_WORDS = 1024
_SECTION = re.compile(r"^\[(?P<name>[^\]]+)\]\s*$")
_ASSIGNMENT = re.compile(r"LLAMA_(ARG_\w+|API_KEY)=.*", re.DOTALL)
ALL_MODELS = "*"  # a router's section for every model
_OF_PRESET = {"load-on-startup", "stop-timeout", "version"}  # not arguments of a server


@dataclass(frozen=True, slots=True)
class WrittenServer:
    name: str
    words: tuple[str, ...]
    """Arguments of llama-server; environment variables as `LLAMA_ARG_X=value`."""
    from_ini: bool = False
    """Then each word is `name=value` without dashes, and flags without a value have `true`."""


def read_servers(text: str) -> list[WrittenServer]:
    """Find out which of the three it is, and read it.

    Raises:
        PlanError: too long, of another kind, or damaged; says where.
    """
    if len(text) > MAX_CHARACTERS:
        raise PlanError(
            f"The configuration has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise PlanError("The configuration is empty.")
    if any(line.startswith("models:") for line in lines):
        found = list(_of_llama_swap(text))
    elif any(map(_SECTION.match, lines)):
        found = list(_of_router(text))
    else:
        found = [WrittenServer("llama-server", tuple(_arguments(text, "the command")))]
    if not found:
        raise PlanError("The configuration names no model.")
    if len(found) > MAX_SERVERS:
        raise PlanError(f"The configuration has {len(found)} models; at most {MAX_SERVERS}.")
    return found


def _arguments(command: str, where: str) -> list[str]:
    """The words after the program, and the environment variables before it."""
    try:
        words = shlex.split(re.sub(r"\\\r?\n", " ", command), comments=True)
    except ValueError as error:
        raise PlanError(f"A quotation mark is not closed in {where}.") from error
    if len(words) > MAX_WORDS:
        raise PlanError(f"There are {len(words):,} words in {where}; at most {MAX_WORDS:,}.")
    if words and words[0].startswith("-"):
        return words
    for index, word in enumerate(words):
        if "llama-server" in PurePath(word).name or "llama.cpp:" in word:
            before = [found for found in words[:index] if _ASSIGNMENT.fullmatch(found)]
            return before + words[index + 1 :]
    raise PlanError(
        f"There is no llama-server in {where}. Paste a llama-server command, the INI file of a"
        " router, or a config.yaml of llama-swap."
    )


def _of_router(text: str) -> Iterator[WrittenServer]:
    sections: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.split(r"[#;]", line, maxsplit=1)[0].strip()
        title = _SECTION.match(plain)
        name, equals, value = plain.partition("=")
        if title:
            # Of a section that stands twice the router reads the last alone.
            section = sections[title["name"].strip()] = {}
        elif plain and line[:1].isspace():
            raise PlanError(f"Line {number} of the INI is indented: the router does not read it.")
        elif equals and name.strip():
            section[name.strip()] = value.strip()
        elif plain:
            raise PlanError(f"Line {number} of the INI is neither [name] nor key = value.")
    shared = sections.pop(ALL_MODELS, {})
    for name, own in sections.items():
        settings = {key: value for key, value in (shared | own).items() if key not in _OF_PRESET}
        words = tuple(f"{key}={value}" for key, value in settings.items())
        yield WrittenServer(name, words, from_ini=True)


def _of_llama_swap(text: str) -> Iterator[WrittenServer]:
    config = read_yaml(text)
    models = config.get("models") if isinstance(config, Mapping) else None
    if not isinstance(config, Mapping) or not isinstance(models, Mapping):
        raise PlanError("“models” of llama-swap's configuration is not a mapping of names.")
    shared = _macros(config)
    for name, model in models.items():
        where = f"the command of “{name}”"
        cmd = model.get("cmd") if isinstance(model, Mapping) else None
        if not isinstance(model, Mapping) or not isinstance(cmd, str):
            raise PlanError(f"The model “{name}” has no text “cmd”.")
        macros = {"MODEL_ID": str(name)} | shared | _macros(model)
        written = model.get("env")
        environment = written if isinstance(written, list) else []
        known = [word for word in map(str, environment) if _ASSIGNMENT.fullmatch(word)]
        words = _arguments(_expanded(cmd, macros, where), where)
        yield WrittenServer(str(name), (*known, *words))


def _macros(mapping: Mapping[object, object]) -> dict[str, str]:
    found = mapping.get("macros")
    if not isinstance(found, Mapping):
        return {}
    return {str(key): str(value) for key, value in found.items() if isinstance(value, str | int)}


def _expanded(command: str, macros: Mapping[str, str], where: str) -> str:
    """Put macros in; a macro may hold those that stand before it."""
    for name, value in reversed(list(macros.items())):
        mark = f"${{{name}}}"
        if len(command) + command.count(mark) * len(value) > MAX_CHARACTERS:
            raise PlanError(f"The macros make {where} too long.")
        command = command.replace(mark, value)
    return command
