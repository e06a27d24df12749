"""What a run measures, and its JSON in the fields of `Run`: written and read here alone. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from apps.core.schemas.json_types import JsonObject

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Accuracy after training on a number of rows, with its 95% CI."""

    rows: int
    accuracy: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    """Of the gain since the point before, on the same test rows; None at the first point."""
    gain_low: float = 0.0
    gain_high: float = 0.0

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read a point; those of older runs have fewer fields."""
        return cls(**{name: stored[name] for name in _names(cls) if name in stored})


@dataclass(frozen=True, slots=True)
class ConfusedTexts:
    """A pair of labels that the classifier confuses, with some texts."""

    label: str
    predicted: str
    count: int
    support: int
    texts: list[str]


@dataclass(frozen=True, slots=True)
class CitedRow:
    row: str
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class LeakPair:
    """A test row and the training row that it repeats."""

    cosine: float
    exact: bool
    test: CitedRow
    train: CitedRow


@dataclass(slots=True)
class Leaks:
    """Duplicates and near-duplicates between the sides, and what they are worth in accuracy."""

    copies: int
    train_copies: int
    conflicts: int
    test_rows: int
    test_exact: int
    test_near: int
    test_very_near: int
    test_near_other_label: int
    compared: int
    threshold: float
    accuracy_all: float
    clean_rows: int
    accuracy_clean: float | None
    pairs: list[LeakPair]
    grouped_accuracy: float | None = None
    """Cross-validated, with equal texts in one fold; None where few texts repeat."""
    naive_accuracy: float | None = None
    """The same with rows in any fold."""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that is too long for the embedding model."""

    row: str
    test: bool
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class StrengthScore:
    """Cross-validated scores of one regularisation strength."""

    C: float
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class FitSummary:
    """Outcome of the fit."""

    C: float
    temperature: float
    converged: bool
    at_edge: bool
    mistakes: int
    calibrated: bool
    held_back: bool
    path: list[StrengthScore]
    labels: int
    strange_rows: int
    """Rows labelled out of scope."""
    unlabelled_rows: int


def to_json(result: "DataclassInstance") -> JsonObject:
    """Write a result as the value of a JSON field."""
    return asdict(result)


def to_json_list(results: "Iterable[DataclassInstance]") -> list[JsonObject]:
    return [to_json(result) for result in results]


def _names(of: type) -> list[str]:
    return [field.name for field in fields(of)]
