"""Registry of the models of the workbench itself: one room provides them, the gateway asks them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apps.core.label_models.label_model import LabelModel, LabelScores


@dataclass(frozen=True, slots=True)
class Provider:
    """A room's models. What blocks asks the database; all begin at a person's primary key."""

    prefix: str
    """Begins the names of all its models."""
    list_models: Callable[[int], list[LabelModel]]
    """Returns the models of a person. Blocks."""
    find_model: Callable[[int, str], LabelModel | None]
    """Returns the model of a person by its id or an alias. Blocks."""
    score_text: Callable[[int, LabelModel, str, str], Awaitable[LabelScores]]
    """Takes the person, a model, a text and the name of the lane in which others are asked.

    Raises LabelModelError."""
    server_of: Callable[[int, LabelModel], tuple[int, str]]
    """Returns the primary key of the model server that a model asks, and the model there. Blocks.

    Raises LabelModelError."""


_providers: list[Provider] = []


def register_provider(provider: Provider) -> None:
    """Offer models. To be called in `AppConfig.ready`."""
    _providers[:] = [one for one in _providers if one.prefix != provider.prefix] + [provider]


def provider_of(name: str) -> Provider | None:
    """Return whose model a name may be."""
    return next((one for one in _providers if name.startswith(one.prefix)), None)


def list_models(person: int) -> list[LabelModel]:
    """Return all models of a person. Blocks."""
    return [model for one in _providers for model in one.list_models(person)]
