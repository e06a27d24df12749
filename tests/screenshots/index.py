"""The page that shows all pictures of a folder, by page and state."""

import re
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

NAME = re.compile(r"(?P<page>.+)-(?P<look>\d+-(light|dark))\.webp")
HEAD = """# Every page

Made by `make screenshots`; do not edit. Each page in its states:
empty, typical, long, with an error.
"""


class State(StrEnum):
    EMPTY = "empty"
    TYPICAL = "typical"
    LONG = "long"
    ERROR = "error"


def state_of(page: str) -> State:
    """Return the state that the name of a page ends with; typical if it names none."""
    ending = page.rpartition("-")[2]
    return State(ending) if ending in set(State) else State.TYPICAL


def index_text(names: Iterable[str]) -> str:
    """Return Markdown that shows the pictures with these file names, a heading for each page."""
    looks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in sorted(names):
        if match := NAME.fullmatch(name):
            looks[match["page"]].append((match["look"], name))
    parts = [HEAD]
    for page, pictures in sorted(looks.items()):
        shown = "\n".join(f"![{page}, {look}]({name})" for look, name in pictures)
        parts.append(f"## {page}: {state_of(page)}\n\n{shown}\n")
    return "\n".join(parts)


def write_index(folder: Path) -> None:
    (folder / "README.md").write_text(index_text(path.name for path in folder.glob("*.webp")))
