"""The modules of the project that run for something: how much a reader of it has to open."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def documented_path(title: str, *, until: str) -> list[str]:
    """Return the modules that a path of the architecture names, in its order."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text.partition(f"**{title}**")[2].partition(f"\n{until}")[0]
    files = re.findall(r"`([\w/]+)\.py`", section)
    return [f"apps.{file.replace('/', '.')}" for file in files]


class ModuleTrace:
    """Records the calls of the project's functions in this thread and in threads that start."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """(module, qualified name), in order."""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("apps."):
            self.calls.append((module, frame.f_code.co_qualname))

    def __enter__(self) -> "ModuleTrace":
        threading.settrace(self)
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def modules_between(self, first: str, last: str) -> set[str]:
        """Return the modules from the last call of `first` to the last call of `last`."""
        names = [name for _, name in self.calls]
        start, end = (len(names) - 1 - names[::-1].index(name) for name in (first, last))
        return {module for module, _ in self.calls[start : end + 1]}

    def modules_in_order(self) -> list[str]:
        """Return each module at its first call; values that are only made are no calls."""
        calls = (module for module, name in self.calls if not name.startswith("__create_fn__"))
        return list(dict.fromkeys(calls))
