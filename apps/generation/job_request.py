"""A job as the page, the API or a chat model asks for it."""

from dataclasses import dataclass

from apps.datasets.models import Dataset
from apps.generation.recipe.recipe import Recipe
from apps.servers.models import Server


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """Checked, but not yet whether its test dataset exists."""

    name: str
    rows: int
    seed: int
    recipe: Recipe
    refill: bool = False
    """Go on until `rows` are accepted, quotas kept, or the yield is too low."""
    near: float | None = None
    """Reject a row that has this share of its 5-grams in common with another."""
    meaning: float | None = None
    """Reject a row whose embedding has this cosine with that of another."""
    test_dataset: int | None = None
    """Reject a row that repeats a text of this dataset of the owner's."""
    width: int | None = None
    weight: int = 1
    daily_tokens: int | None = None
    all_servers: bool = False
    """Every server with the same model works on it."""
    keep_recipe: bool = False
    """List the recipe among the person's own."""
    for_dataset: Dataset | None = None
    """The dataset that its rows are meant to make better ..."""
    for_classifier: int | None = None
    """... or the classifier."""


@dataclass(frozen=True)
class RecipeModel:
    """Server and model to store with the recipe; empty for the defaults."""

    server: Server | None = None
    name: str = ""
