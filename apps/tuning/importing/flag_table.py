"""The arguments that a build of llama-server takes, read from its `--help` (pure)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

# `llama-server --help` of the build that the planner's flags are tested with.
TESTED_HELP = Path(__file__).with_name("llama_server_help.txt")
_COLUMN = 40
_NAME = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")
_ENVIRONMENT = re.compile(r"\(env: (\w+)\)")
# Guides still name them; llama-server ends at once when it is given one.
REPLACED = {
    "--mlock": "--load-mode mlock",
    "--mmap": "--load-mode mmap",
    "--no-mmap": "--load-mode none",
    "--direct-io": "--load-mode dio",
    "-dio": "--load-mode dio",
    "--draft-model": "--model-draft",
    "--n-batch": "--batch-size",
    "--n-ctx": "--ctx-size",
    "--n-parallel": "--parallel",
    "--n-threads": "--threads",
    "--slots-endpoint-disable": "--no-slots",
    "LLAMA_ARG_PARALLEL": "LLAMA_ARG_N_PARALLEL",
    "LLAMA_ARG_EMBEDDING": "LLAMA_ARG_EMBEDDINGS",
}


@dataclass(frozen=True, slots=True)
class Argument:
    names: tuple[str, ...]
    """Short and long ones."""
    values: int
    """Words that follow."""
    meaning: str
    environment: str | None = None

    @property
    def name(self) -> str:
        """The last long name that says yes: what the planner writes."""
        long = [name for name in self.names if name[:2] == "--" and name[:5] != "--no-"]
        return long[-1] if long else self.names[0]

    @property
    def removed(self) -> bool:
        return "has been removed" in self.meaning


@dataclass(frozen=True, slots=True)
class FlagTable:
    arguments: Mapping[str, Argument]
    """By each name, and by the environment variable."""

    def find(self, name: str) -> Argument | None:
        written = name.replace("_", "-") if name.startswith("--") else name
        return self.arguments.get(written)

    def instead_of(self, name: str) -> str | None:
        """Suggest a name for one that this build does not know; None: nothing is like it."""
        close = get_close_matches(name, self.arguments, n=1, cutoff=0.8)
        return REPLACED.get(name) or (close[0] if close else None)


def parse_help(text: str) -> FlagTable:
    """Read what `llama-server --help` prints; a table without entries if it is another text."""
    found: dict[str, Argument] = {}
    for header, meaning in _entries(text):
        names = tuple(_NAME.findall(header))
        rest = _NAME.sub("", header).replace(",", " ").strip()
        environment = _ENVIRONMENT.search(meaning)
        argument = Argument(
            names,
            2 if rest == "START END" else int(bool(rest)),
            _ENVIRONMENT.sub("", meaning).strip(),
            environment[1] if environment else None,
        )
        found |= dict.fromkeys(names, argument)
        if environment:
            found[environment[1]] = argument
    return FlagTable(found)


@cache
def shipped_table() -> FlagTable:
    return parse_help(TESTED_HELP.read_text())


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of each argument, and what is said of it in one line."""
    header, meaning = "", ""
    for line in text.splitlines():
        if line.startswith("-") and not line.startswith("-----"):
            if header:
                yield header, meaning
            in_columns = line[_COLUMN - 1 : _COLUMN] in {"", " "}
            header, meaning = (line[:_COLUMN], line[_COLUMN:].strip()) if in_columns else (line, "")
        elif line.startswith(" " * _COLUMN):
            meaning = f"{meaning} {line.strip()}".strip()
    if header:
        yield header, meaning
