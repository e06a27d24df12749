"""The spec that a job's rows share, as its batch stores it (pure)."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from apps.core.schemas.json_types import JsonObject
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.recipe import Recipe

HANDLER = "generation"
"""The name of this room's row handler."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The duplicate filters of a job."""

    near: float | None = None
    """Share of common 5-grams that makes a near-duplicate; None: off."""
    test_set: int | None = None
    """The stored rows of a real test set, which nothing may repeat."""
    meaning: float | None = None
    """From which cosine of embeddings on a text is a near duplicate, see `meaning`; None: it is not
    asked."""
    judged: int = 0
    """Number of changes of the threshold since the job began."""

    @classmethod
    def read(cls, spec: Mapping[str, Any]) -> "Filters":
        """Read the filters of a stored spec."""
        return cls(**spec.get("filters", {}))

    def as_dict(self) -> JsonObject:
        return asdict(self)


def change_filters(spec: JsonObject, change: Callable[[Filters], Filters]) -> JsonObject:
    """Return a stored spec with other filters. The recipe stays as it was stored."""
    return {**spec, "filters": change(Filters.read(spec)).as_dict()}


def stored_rows_of(spec: Mapping[str, Any]) -> list[int]:
    """Return the keys of the `StoredRows` of a stored spec."""
    keys = [*spec.get("stored", {}).values(), Filters.read(spec).test_set]
    return [key for key in keys if key]


@dataclass(frozen=True, slots=True)
class Spec:
    """`system` stays as it was sent, also after later versions change its wording."""

    recipe: Recipe
    seed: int
    system: str
    stored: Mapping[str, int] = field(default_factory=dict)
    """Seed column to the key of its stored rows."""
    filters: Filters = field(default_factory=Filters)
    prompt_tokens: int | None = None
    """Upper bound of a row's prompts, see `prompt_size`; None in old jobs."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Spec":
        return cls(
            recipes.parse(data["recipe"], stored=True),
            data["seed"],
            data["system"],
            data.get("stored", {}),
            Filters.read(data),
            data.get("prompt_tokens"),
        )

    def as_dict(self) -> JsonObject:
        return {
            "recipe": recipes.to_json(self.recipe),
            "seed": self.seed,
            "system": self.system,
            "stored": dict(self.stored),
            "filters": self.filters.as_dict(),
            **({} if self.prompt_tokens is None else {"prompt_tokens": self.prompt_tokens}),
        }
