"""Functions that other rooms provide to this one.

Each room registers once, when it starts. Only the provider of guesses may use the network.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apps.datasets.models import Dataset

# English has about four characters per token, other languages fewer: an estimate.
CHARACTERS_PER_TOKEN = 4

NEAR_DUPLICATE_SEARCH = "datasets.near_duplicates"
"""The kind of the durable task that searches. Its handler ends with `near_duplicates.record`."""


@dataclass(frozen=True, slots=True)
class TextLimit:
    """The longest text that the embedding model reads."""

    model: str
    tokens: int

    @property
    def characters(self) -> int:
        """Texts longer than this are probably over the limit."""
        return self.tokens * CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Guesses:
    """The likeliest labels of a text with calibrated probabilities, best first."""

    by: str
    """What they come from: "Intents, version 3"."""
    labels: tuple[tuple[str, float], ...]


GuessProvider = Callable[[Dataset, str], Awaitable[Guesses | None]]
TextLimitProvider = Callable[[], TextLimit | None]
TrainedOnProvider = Callable[[Dataset, int], bool]

text_limit_providers: list[TextLimitProvider] = []
trained_on_providers: list[TrainedOnProvider] = []
guess_providers: list[GuessProvider] = []


def register_text_limit(provider: TextLimitProvider) -> None:
    text_limit_providers[:] = [provider]


def text_limit() -> TextLimit | None:
    """Return the limit; None if no embedding model is known."""
    return text_limit_providers[0]() if text_limit_providers else None


def register_trained_on(provider: TrainedOnProvider) -> None:
    trained_on_providers[:] = [provider]


def is_trained_on(dataset: Dataset, classifier: int) -> bool:
    """Return True if a classifier with this key, of the dataset's owner, was trained on it."""
    return bool(trained_on_providers) and trained_on_providers[0](dataset, classifier)


def register_guesses(provider: GuessProvider) -> None:
    guess_providers[:] = [provider]


async def guess_labels(dataset: Dataset, text: str) -> Guesses | None:
    """Return the likeliest labels; None if no classifier of the dataset answers in time."""
    return await guess_providers[0](dataset, text) if guess_providers else None
