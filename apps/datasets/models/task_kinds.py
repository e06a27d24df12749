"""Kinds of durable tasks of this room, each with the subject of its tasks."""

from enum import StrEnum


class TaskKind(StrEnum):
    IMPORT = "datasets.import"
    """Of an upload."""
    CHANGE = "datasets.change"
    """Of many rows of a dataset. Its options are `change`, a planner's name, and its `args`."""
    REMOVAL = "datasets.removal"
    """Of a dataset. A new one has it as long as its creation may be cut off."""
