"""A model of the workbench itself: it gives a text one of its labels. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from apps.core.errors import DomainError


@dataclass(frozen=True, slots=True)
class LabelModel:
    """What programs are told of a model."""

    id: str
    """Stays when the model gets another name."""
    aliases: tuple[str, ...]
    created: datetime

    @property
    def names(self) -> tuple[str, ...]:
        return self.id, *self.aliases


@dataclass(frozen=True, slots=True)
class LabelScores:
    """The labels of one text with calibrated probabilities."""

    version: int
    ranked: tuple[tuple[str, float], ...]
    """All labels, best first. The first is the one it gives."""
    refusal: str = ""
    """Why the label should not be trusted: "unsure", "none_of_these", or "": nothing against it."""
    notice: str = ""
    """What was done to a text that was too long."""

    @property
    def label(self) -> str:
        return self.ranked[0][0]

    @property
    def probabilities(self) -> Mapping[str, float]:
        return dict(self.ranked)

    @property
    def remarks(self) -> dict[str, str]:
        """What the label alone does not say, under its names in the API."""
        found = {"gate": self.refusal, "notice": self.notice}
        return {name: text for name, text in found.items() if text}


class LabelModelError(DomainError):
    """A model that cannot answer. The message says why and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.retry_after = status, code, retry_after
