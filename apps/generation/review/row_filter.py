"""Filter and order of the rows on a page, and paging by position."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet

from apps.batch.models import ACTIVE, Item, ItemStatus
from apps.batch.services import rows_of
from apps.generation.models import Job

ALL, NEWEST, UNSEEN = "all", "newest", "unseen"
FILTERS = {
    ALL: "All",
    NEWEST: "Newest",
    **{status: status.capitalize() for status in ItemStatus.values},
    UNSEEN: "Unreviewed",
}
"""What may be chosen, in words: rows of every state by number, the last that were finished, rows of
one state, accepted rows that no person has looked at."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows of a filter, perhaps only those with one kind of reason."""

    name: str
    code: str = ""

    @classmethod
    def of(cls, job: Job, query: Mapping[str, str]) -> "RowFilter":
        """Read the filter of an address; default: newest rows of an active job, else all rows."""
        name = query.get("status", "")
        if name not in FILTERS:
            name = NEWEST if job.batch.status in ACTIVE else ALL
        return cls(name, query.get("code", "")[:30])

    def rows(self, job: Job) -> QuerySet[Item]:
        items = rows_of(job.batch_id).order_by("index")
        if self.name == NEWEST:
            items = items.filter(finished__isnull=False).order_by("-finished", "-index")
        elif self.name == UNSEEN:
            items = items.filter(status=ItemStatus.ACCEPTED, reviewed=False)
        elif self.name != ALL:
            items = items.filter(status=self.name)
        return items.filter(code=self.code) if self.code else items

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
        first, last = self._place(items[0]), self._place(items[-1])
        earlier = rows.filter(self._beyond(first, back=True) or Q()).count()
        return RowPage(items, earlier, rows.count(), first, last)

    def _place(self, item: Item) -> str:
        """Return the position of a row in this order, for an address."""
        if self.name != NEWEST or item.finished is None:
            return str(item.index)
        return f"{(item.finished - _EPOCH) // _TICK}.{item.index}"

    def _beyond(self, place: str, *, back: bool = False) -> Q | None:
        """The rows that follow a place, or with `back` those before it; None for no place."""
        time, _, index = place.rpartition(".")
        if not index.isdecimal() or len(index) > 9:
            return None
        smaller = "lt" if back != (self.name == NEWEST) else "gt"
        by_index = Q(**{f"index__{smaller}": int(index)})
        if self.name != NEWEST:
            return by_index
        if not time.isdecimal() or len(time) > 16:
            return None
        finished = _EPOCH + int(time) * _TICK
        return Q(**{f"finished__{smaller}": finished}) | Q(finished=finished) & by_index


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
