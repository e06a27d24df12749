"""The modules of the project that run for something: how much a reader of it has to open."""

import sys
import threading
from types import FrameType
from typing import Any


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
