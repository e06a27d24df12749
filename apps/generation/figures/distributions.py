"""How a job's rows are spread: scores, and the shares of each column's values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from django.db.models import Count

from apps.batch.models import Item, ItemStatus
from apps.batch.services import rows_of
from apps.generation.exports.row_fields import full_row
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.row_search.columns import FilterColumn, criteria_of, filter_columns
from apps.generation.row_search.expressions import number_of

SHOWN_VALUES = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its rows, and its length in a chart."""

    label: str
    rows: int
    length: float
    """0 to 1 of the longest bar."""


@dataclass(frozen=True, slots=True)
class ScoreHistogram:
    name: str
    at_least: int
    """Rows with a lower score are rejected; 0 for none."""
    bars: list[Bar]
    """From 1 to the largest score; lengths by the logarithm of the rows."""

    @property
    def rows(self) -> int:
        return sum(bar.rows for bar in self.bars)


def score_histograms(job: Job) -> list[ScoreHistogram]:
    """Count the scores of all judged rows, accepted and rejected."""
    found = []
    judged = rows_of(job.batch_id).filter(status__in=(ItemStatus.ACCEPTED, ItemStatus.REJECTED))
    for criterion in criteria_of(job.spec.recipe):
        grouped = (
            judged.values_list(number_of(criterion.name)).annotate(rows=Count("pk")).order_by()
        )
        counts = dict(grouped)
        scores = range(1, criterion.largest + 1)
        most = log10(1 + max((counts.get(score, 0) for score in scores), default=0))
        bars = [
            Bar(str(score), rows, log10(1 + rows) / most if most else 0.0)
            for score in scores
            for rows in [counts.get(score, 0)]
        ]
        found.append(ScoreHistogram(criterion.name, criterion.at_least, bars))
    return found


@dataclass(frozen=True, slots=True)
class ColumnShares:
    name: str
    total: int
    """Rows that were counted."""
    bars: list[Bar]
    """The most frequent values first."""
    others: int
    """Values that are not shown."""


def column_shares(job: Job, rows: Sequence[Item]) -> list[ColumnShares]:
    """Count the values of each column with few values, among some rows."""
    spec = job.spec
    columns = [column for column in filter_columns(spec.recipe) if not column.is_score]
    fields = [full_row(spec, row) for row in rows] if columns else []
    return [
        _shares(column, [to_text(row.get(column.name)) for row in fields]) for column in columns
    ]


def _shares(column: FilterColumn, values: Sequence[str]) -> ColumnShares:
    counts = Counter(values)
    # A value that never came is worth knowing.
    counts.update(dict.fromkeys(column.values, 0))
    shown = counts.most_common(SHOWN_VALUES)
    most = shown[0][1] if shown else 0
    bars = [Bar(value or "–", rows, rows / most if most else 0.0) for value, rows in shown]
    return ColumnShares(column.name, len(values), bars, len(counts) - len(shown))
