"""What a job's rows share, as it is stored with the batch (pure)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from apps.generation.recipe import parse as recipes
from apps.generation.recipe.recipe import Recipe

HANDLER = "generation"
"""Under which name the pump finds what works these rows."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What is compared with other texts while a job runs."""

    near: float | None = None
    """From which share of common 5-grams on a text is a near duplicate; None: it is not asked."""
    test_set: int | None = None
    """The stored rows of a real test set, which nothing may repeat."""
    meaning: float | None = None
    """From which cosine of embeddings on a text is a near duplicate, see `meaning`; None: it is not
    asked."""
    judged: int = 0
    """How often the stored rows were judged again by another threshold."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Spec:
    """`system` is kept as it was sent, whatever later versions say."""

    recipe: Recipe
    seed: int
    system: str
    stored: Mapping[str, int] = field(default_factory=dict)
    """Seed column to the key of its stored rows."""
    filters: Filters = field(default_factory=Filters)
    prompt_tokens: int | None = None
    """What a row's prompts may come to, see `prompt_size`; None: of a job from before that."""

    @classmethod
    def read(cls, data: dict[str, Any]) -> "Spec":
        return cls(
            recipes.parse(data["recipe"], stored=True),
            data["seed"],
            data["system"],
            data.get("stored", {}),
            Filters(**data.get("filters", {})),
            data.get("prompt_tokens"),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "recipe": recipes.to_json(self.recipe),
            "seed": self.seed,
            "system": self.system,
            "stored": dict(self.stored),
            "filters": self.filters.as_dict(),
            **({} if self.prompt_tokens is None else {"prompt_tokens": self.prompt_tokens}),
        }
