"""A page of rows: filtered, searched, by cursor, so the last page costs what the first does."""

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from apps.datasets.models import Dataset, Example
from apps.datasets.rows.reports import WORDS, Issue, rows_with

PAGE_ROWS = 50
BY_TEXT = (Issue.DUPLICATE, Issue.CONFLICT, Issue.LEAK)
"""Shown with equal texts side by side."""


@dataclass(frozen=True, slots=True)
class Filters:
    """None is no filter; the label "" is that of unlabelled rows."""

    label: str | None = None
    split: str | None = None
    issue: Issue | None = None
    search: str = ""

    @property
    def is_set(self) -> bool:
        return self != Filters()

    @property
    def query(self) -> str:
        """For an address."""
        given = {
            "label": self.label,
            "unlabelled": "1" if self.label == "" else None,
            "split": self.split if self.split != "" else "none",
            "issue": self.issue.value if self.issue else None,
            "q": self.search or None,
        }
        return urlencode({name: value for name, value in given.items() if value})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Filters":
        issue = value["issue"]
        return cls(**value | {"issue": Issue(issue) if issue else None})

    @property
    def issue_words(self) -> str:
        return WORDS[self.issue] if self.issue else ""


def rows(dataset: Dataset, filters: Filters) -> QuerySet[Example]:
    """Return the rows that pass, in order."""
    found = rows_with(dataset, filters.issue) if filters.issue else dataset.examples.all()
    if filters.label is not None:
        found = found.filter(label=filters.label)
    if filters.split is not None:
        found = found.filter(split=filters.split)
    if filters.search:
        found = found.filter(text__icontains=filters.search)
    if filters.issue in BY_TEXT:
        return found.order_by("text_key", "index")
    return found.order_by("index")


@dataclass(frozen=True, slots=True)
class RowsPage:
    rows: list[Example]
    previous: str
    """The cursor of the page before, for `before=`; empty on the first."""
    next: str

    @property
    def first(self) -> int:
        return self.rows[0].index + 1

    @property
    def last(self) -> int:
        return self.rows[-1].index + 1


def page(
    dataset: Dataset,
    filters: Filters,
    *,
    after: str = "",
    before: str = "",
    limit: int = PAGE_ROWS,
) -> RowsPage:
    """Return the rows after or before a cursor; the first page if the cursor is invalid."""
    found = rows(dataset, filters)
    keyed = filters.issue in BY_TEXT
    place = _place(before or after, keyed)
    backwards = bool(before) and place is not None
    if place is not None:
        found = _beyond(found, place, backwards)
    if backwards:
        found = found.reverse()
    shown = list(found[: limit + 1])
    more = len(shown) > limit
    shown = shown[:limit]
    if backwards:
        shown.reverse()
    if not shown and place is not None:
        return page(dataset, filters, limit=limit)
    has_previous = more if backwards else place is not None
    has_next = True if backwards else more
    return RowsPage(
        shown,
        _cursor(shown[0], keyed) if shown and has_previous else "",
        _cursor(shown[-1], keyed) if shown and has_next else "",
    )


def _cursor(row: Example, keyed: bool) -> str:
    return f"{row.text_key}.{row.index}" if keyed else str(row.index)


def _place(cursor: str, keyed: bool) -> tuple[int, ...] | None:
    parts = cursor.split(".")
    if len(parts) != (2 if keyed else 1):
        return None
    try:
        place = tuple(map(int, parts))
    except ValueError:
        return None
    return place if all(-(2**63) <= part < 2**63 for part in place) else None


def _beyond(found: QuerySet[Example], place: tuple[int, ...], backwards: bool) -> QuerySet[Example]:
    to = "lt" if backwards else "gt"
    if len(place) == 1:
        return found.filter(**{f"index__{to}": place[0]})
    key, index = place
    return found.filter(Q(**{f"text_key__{to}": key}) | Q(text_key=key, **{f"index__{to}": index}))
