"""A row as people read it: texts first, then short values, then what a judge said."""

from dataclasses import dataclass

from apps.batch.models import Item
from apps.generation.recipe.columns.judge import Criterion, Judge
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.review.similar_rows import RowField, row_fields

SHORT = 60
"""Characters up to which a written value is shown beside the drawn ones."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a judge gave a row by one criterion."""

    name: str
    value: str
    largest: int
    too_low: bool

    @property
    def share(self) -> float:
        """The share of the largest score, 0 to 1."""
        return min(1.0, int(self.value) / self.largest) if self.value.isdecimal() else 0.0


@dataclass(frozen=True, slots=True)
class ShownRow:
    """The fields of a row by how they are shown; each field is in one of these."""

    texts: list[RowField]
    values: list[RowField]
    """Short ones, written or drawn."""
    scores: list[Score]
    reasons: list[RowField]
    """Why a judge gave its scores."""


def shown_row(spec: Spec, item: Item) -> ShownRow:
    """Sort the fields of a row by how they are read; a row without fields has none."""
    fields = row_fields(spec, item) if item.current_output is not None else []
    scores = scores_of(spec.recipe, fields)
    judged = {score.name for score in scores}
    by_judge = {column.reason_name for column in _judges(spec.recipe)}
    others = [field for field in fields if field.name not in judged | by_judge]
    texts = [field for field in others if field.written and is_text(field)]
    if not texts:
        texts = [field for field in others if field.written][:1] or others[:1]
    return ShownRow(
        texts,
        [field for field in others if field not in texts],
        scores,
        [field for field in fields if field.name in by_judge],
    )


def scores_of(recipe: Recipe, fields: list[RowField]) -> list[Score]:
    """Return the scores among the fields of a row."""
    values = {field.name: field.value for field in fields}
    return [
        _score(values[criterion.name], criterion)
        for judge in _judges(recipe)
        for criterion in judge.criteria
        if criterion.name in values
    ]


def _judges(recipe: Recipe) -> list[Judge]:
    return [column for column in recipe.written if isinstance(column, Judge)]


def is_text(field: RowField) -> bool:
    """True for a value to read, not one that is seen at a glance."""
    return len(field.value) > SHORT or "\n" in field.value


def _score(value: str, criterion: Criterion) -> Score:
    too_low = value.isdecimal() and int(value) < criterion.at_least
    return Score(criterion.name, value, criterion.largest, too_low)
