"""Filter and order of the rows on a page, and paging by position."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from apps.batch.models import ACTIVE, Item, ItemStatus
from apps.batch.services import rows_of
from apps.generation.models import Job
from apps.generation.recipe.recipe import Recipe
from apps.generation.row_search.columns import criteria_of, filter_columns
from apps.generation.row_search.expressions import (
    has_value,
    number_of,
    searched_text,
    spellings,
)

ALL, NEWEST, UNSEEN = "all", "newest", "unseen"
FILTERS = {
    ALL: "All",
    NEWEST: "Newest",
    **{status: status.capitalize() for status in ItemStatus.values},
    UNSEEN: "Unreviewed",
}
"""What may be chosen, in words: rows of every state by number, the last that were finished, rows of
one state, accepted rows that no person has looked at."""

MAX_SEARCH = 200  # characters
NO_SCORE = 1_000_000
FINISHED = (NEWEST, UNSEEN, ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)
"""Filters whose rows are all finished."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows of a state, perhaps only some of them, in an order."""

    name: str
    code: str = ""
    """Only rows with this kind of reason."""
    text: str = ""
    """Only rows in which this text is found."""
    values: tuple[tuple[str, str], ...] = ()
    """Only rows with this value in a column; of a score, this or a lower one."""
    sort: str = ""
    """A key of `sorts`; "": by number, of `NEWEST` the newest first."""

    @classmethod
    def of(cls, job: Job, query: Mapping[str, str]) -> "RowFilter":
        """Read the filter of an address; default: newest rows of an active job, else all rows."""
        name = query.get("status", "")
        if name not in FILTERS:
            name = NEWEST if job.batch.status in ACTIVE else ALL
        recipe = job.spec.recipe
        sort = query.get("sort", "")
        if sort not in sorts(recipe):
            sort = ""
        chosen = tuple(
            (column.name, value)
            for column in filter_columns(recipe)
            if (value := query.get(f"is.{column.name}", "")) in column.values
        )
        text = query.get("q", "").strip()[:MAX_SEARCH]
        return cls(name, query.get("code", "")[:30], text, chosen, sort)

    @property
    def is_narrow(self) -> bool:
        """True if the fields of rows decide, so that every row has to be read."""
        return bool(self.text or self.values or ":" in self.sort)

    def query(self, **changes: str) -> str:
        """Return the filter as the query of an address, with changes; an empty one is left out."""
        given = {"status": self.name, "code": self.code, "q": self.text, "sort": self.sort}
        given |= {f"is.{name}": value for name, value in self.values} | changes
        return urlencode({name: value for name, value in given.items() if value})

    def rows(self, job: Job) -> QuerySet[Item]:
        items = rows_of(job.batch_id)
        if self.name == NEWEST:
            items = items.filter(finished__isnull=False)
        elif self.name == UNSEEN:
            items = items.filter(status=ItemStatus.ACCEPTED, reviewed=False)
        elif self.name != ALL:
            items = items.filter(status=self.name)
        if self.code:
            items = items.filter(code=self.code)
        return self._ordered(self._narrowed(items, job.spec.recipe))

    def _narrowed(self, items: QuerySet[Item], recipe: Recipe) -> QuerySet[Item]:
        scores = {criterion.name for criterion in criteria_of(recipe)}
        for at, (name, value) in enumerate(self.values):
            if name in scores:
                items = items.alias(**{f"value_{at}": number_of(name)})
                items = items.filter(**{f"value_{at}__lte": int(value)})
            else:
                items = items.alias(**{f"value_{at}": has_value(name, value)})
                items = items.filter(**{f"value_{at}__gt": 0})
        if self.text:
            found = Q(raw__icontains=self.text, output=None)
            for spelling in spellings(self.text):
                found |= Q(searched__icontains=spelling)
            names = recipe.field_names
            items = items.alias(searched=searched_text(names, self.text)).filter(found)
        return items

    @property
    def _is_newest(self) -> bool:
        return self.sort == NEWEST or (self.name == NEWEST and not self.sort)

    @property
    def _falls(self) -> bool:
        """True if larger places come first."""
        return self._is_newest or self.sort.startswith("high:")

    def _ordered(self, items: QuerySet[Item]) -> QuerySet[Item]:
        sign = "-" if self._falls else ""
        if self._is_newest:
            return items.filter(finished__isnull=False).order_by("-finished", "-index")
        if ":" not in self.sort:
            return items.order_by("index")
        # Rows without a score come last.
        missing = -1 if self._falls else NO_SCORE
        score = Coalesce(number_of(self.sort.partition(":")[2]), missing)
        return items.annotate(score=score).order_by(f"{sign}score", f"{sign}index")

    def page(self, job: Job, query: Mapping[str, str], size: int) -> "RowPage":
        """`size` rows from the place that the address names, `after` it or `before` it.

        By place and not by page number: rows that are taken out while one goes through them move
        none of those that are left to a page already seen.
        """
        rows = self.rows(job)
        items: list[Item] = []
        if (before := self._beyond(query.get("before", ""), back=True)) is not None:
            items = list(rows.filter(before).reverse()[:size])[::-1]
        if len(items) < size:  # a first page is a whole one
            after = self._beyond(query.get("after", ""))
            items = list(rows.filter(after or Q())[:size])
        if not items:
            return RowPage([], 0, rows.count(), "", "")
        first, last = self.place(items[0]), self.place(items[-1])
        earlier = rows.filter(self._beyond(first, back=True) or Q()).count()
        return RowPage(items, earlier, rows.count(), first, last)

    def place(self, item: Item) -> str:
        """Return the position of a row in this order, for an address."""
        if ":" in self.sort:
            return f"{item.score}.{item.index}"  # type: ignore[attr-defined]  # annotated
        if not self._is_newest or item.finished is None:
            return str(item.index)
        return f"{(item.finished - _EPOCH) // _TICK}.{item.index}"

    def _beyond(self, place: str, *, back: bool = False) -> Q | None:
        """The rows that follow a place, or with `back` those before it; None for no place."""
        value, _, index = place.rpartition(".")
        if not index.isdecimal() or len(index) > 9:
            return None
        smaller = "lt" if back != self._falls else "gt"
        by_index = Q(**{f"index__{smaller}": int(index)})
        if not self._is_newest and ":" not in self.sort:
            return by_index
        if not value.removeprefix("-").isdecimal() or len(value) > 16:
            return None
        at: dict[str, object] = {"score": int(value)}
        if self._is_newest:
            at = {"finished": _EPOCH + int(value) * _TICK}
        beyond = Q(**{f"{name}__{smaller}": place for name, place in at.items()})
        return beyond | Q(**at) & by_index


def sorts(recipe: Recipe) -> dict[str, str]:
    """Return the orders of a job's rows with their labels, by the key in an address."""
    found = {NEWEST: "Newest first", "number": "Row number"}
    for criterion in criteria_of(recipe):
        found[f"low:{criterion.name}"] = f"Lowest {criterion.name} first"
        found[f"high:{criterion.name}"] = f"Highest {criterion.name} first"
    return found


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows that follow each other."""

    items: list[Item]
    earlier: int
    """How many come before them."""
    total: int
    first: str
    last: str
    """The places of the first and the last one, for the addresses of the next pages."""

    @property
    def start(self) -> int:
        return self.earlier + 1

    @property
    def end(self) -> int:
        return self.earlier + len(self.items)

    @property
    def has_next(self) -> bool:
        return self.end < self.total
