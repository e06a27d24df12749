"""The page that shows all pictures of a folder: a table of pages by state, then the pictures."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.screenshots.pages import PAGES, Listed
from tests.screenshots.state import State, scene_name

NAME = re.compile(r"(?P<scene>.+)-(?P<look>\d+-(light|dark))\.webp")
HEAD = """# Every page

Made by `make screenshots`; do not edit. Typical pages are 1440 and 390 pixels wide in light and
dark, other states 1440 in light and 390 in dark. Where a state has no picture, the reason.

| Page | Address | Empty | Typical | Long | Error |
|---|---|---|---|---|---|
"""


def _cell(page: Listed, state: State, taken: Iterable[str]) -> str:
    name = scene_name(page.name, state)
    if name in taken:
        return f"[shown](#{name})"
    return page.reason(state) or "not taken"


def index_text(names: Iterable[str]) -> str:
    """Return Markdown that shows the pictures with these file names."""
    scenes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in sorted(names):
        if match := NAME.fullmatch(name):
            scenes[match["scene"]].append((match["look"], name))
    rows = [
        f"| {page.name} | `/{page.route}` | "
        + " | ".join(_cell(page, state, scenes) for state in State)
        + " |\n"
        for page in PAGES
    ]
    shown = [
        f"\n## {scene}\n\n" + "\n".join(f"![{scene}, {look}]({name})" for look, name in pictures)
        for page in PAGES
        for state in State
        if (pictures := scenes.get(scene := scene_name(page.name, state)))
    ]
    return HEAD + "".join(rows) + "\n".join(shown) + "\n"


def write_index(folder: Path) -> None:
    (folder / "README.md").write_text(index_text(path.name for path in folder.glob("*.webp")))
