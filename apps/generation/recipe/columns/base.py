"""The base of all columns (pure).

A column gives the row one value or several. `names` is what later templates may use, `fields` is
the part that is in the finished row.
"""

from collections.abc import Mapping
from typing import Any

from apps.generation.recipe.fields import Condition, Flag, Name, Part
from apps.generation.recipe.problems import Problem


class Column(Part):
    NOT_AN_OBJECT = "A column is an object with a name, a kind and what the kind needs."

    name: Name
    kind: str
    condition: Condition = ""
    """An expression over earlier columns; where it is false the column stays empty."""
    keep: Flag = True
    """False: the column only helps to make the row and is not part of it."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.names if self.keep else ()

    @classmethod
    def unknown_key(cls, key: str, data: Mapping[str, Any]) -> Problem:
        return Problem((key,), f"Unknown key for a {data.get('kind', 'category')} column.")

    def to_json(self) -> dict[str, Any]:
        """The keys that were given and are not empty."""
        return {name: value for name, value in super().to_json().items() if value not in ("", None)}
