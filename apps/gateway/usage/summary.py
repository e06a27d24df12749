"""Usage added up for people: by day, key, person or model. Each sees their own, admins see all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet, Sum

from apps.gateway.models import COUNTERS, Usage

# Keys, people or models in a table and in a list to choose from.
MAX_SHOWN = 200
MAX_DAYS = 366
GROUPS = {
    "day": ["day"],
    "key": ["key_id", "key_name", "user__username"],
    "person": ["user__username"],
    "model": ["model"],
}


@dataclass(frozen=True, slots=True)
class UsageFilter:
    first: date
    last: date
    key: int | None = None
    model: str | None = None
    person: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums of requests. Tokens are None where not one request reported them."""

    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    unreported: int = 0
    """Requests without a report of their tokens."""
    waited: float | None = None
    """Seconds until a request had a slot, on average."""

    @classmethod
    def from_sums(cls, sums: Mapping[str, int | None]) -> "Figures":
        number = {name: sums[name] or 0 for name in COUNTERS}
        tokens = {
            name: number[name] if number[f"{name}_reports"] else None
            for name in ("prompt", "cached", "completion")
        }
        waits = number["waits"]
        return cls(
            number["requests"],
            number["failed"],
            number["cancelled"],
            **tokens,
            unreported=number["requests"] - number["prompt_reports"],
            waited=number["waited_ms"] / waits / 1000 if waits else None,
        )

    def cost(self, prices: Mapping[str, float]) -> float | None:
        """Return what the reported tokens cost; None where none was reported or has a price.

        Args:
            prices: of a million tokens: in, cached (else as in) and out.
        """
        known = {
            "in": None if self.prompt is None else self.prompt - (self.cached or 0),
            "cached": self.cached,
            "out": self.completion,
        }
        all_prices = {"cached": prices["in"], **prices} if "in" in prices else prices
        parts = [
            count * all_prices[item]
            for item, count in known.items()
            if count is not None and item in all_prices
        ]
        return sum(parts) / 1_000_000 if parts else None


def visible_to(user: User) -> QuerySet[Usage]:
    return Usage.objects.all() if user.is_staff else Usage.objects.filter(user=user)


def filtered(user: User, chosen: UsageFilter) -> QuerySet[Usage]:
    """Return the rows that this person may see, as chosen."""
    rows = visible_to(user).filter(day__gte=chosen.first, day__lte=chosen.last)
    if chosen.key is not None:
        rows = rows.filter(key_id=chosen.key)
    if chosen.model is not None:
        rows = rows.filter(model=chosen.model)
    if chosen.person is not None:
        rows = rows.filter(user_id=chosen.person)
    return rows


def total(rows: QuerySet[Usage]) -> Figures:
    return Figures.from_sums(rows.aggregate(**{name: Sum(name) for name in COUNTERS}))


def grouped(rows: QuerySet[Usage], by: str) -> list[tuple[tuple[object, ...], Figures]]:
    """Return names and figures, the newest day or the most requests first, MAX_SHOWN at most."""
    names = GROUPS[by]
    sums = {f"sum_{name}": Sum(name) for name in COUNTERS}
    order = "-day" if by == "day" else "-sum_requests"
    found = rows.values(*names).annotate(**sums).order_by(order, *names)
    return [
        (
            tuple(row[name] for name in names),
            Figures.from_sums({name: row[f"sum_{name}"] for name in COUNTERS}),
        )
        for row in found[: MAX_DAYS if by == "day" else MAX_SHOWN]
    ]


def by_day(rows: QuerySet[Usage], first: date, last: date) -> Iterator[Figures]:
    """Yield the figures of each day. On a day without a request there were no tokens: that is 0."""
    found = {names[0]: figures for names, figures in grouped(rows, "day")}
    nothing = Figures(prompt=0, cached=0, completion=0)
    for number in range((last - first).days + 1):
        yield found.get(first + timedelta(days=number), nothing)
