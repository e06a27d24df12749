"""Usage in the database: written in bulk, kept for a year."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from apps.gateway.models import COUNTERS, StoredBatch, Usage
from apps.gateway.usage.counters import UsageKey, delete_batch, take_batch

KEPT = timedelta(days=366)
# Rows of one person and day. Further keys and models are counted together.
MAX_ROWS = 500

Place = tuple[date, int, int, str]
"""Day, person, key and model: what a row is found by."""


def store_usage() -> None:
    """Store what was counted since the last time, and delete what is kept no longer.

    Raises:
        RedisError: what was counted is stored the next time.
    """
    if (batch := take_batch()) is None:
        return
    _store(batch.name, batch.counts)
    delete_batch()


@transaction.atomic
def _store(name: str, counts: Mapping[UsageKey, Mapping[str, int]]) -> None:
    StoredBatch.objects.get_or_create(pk=1)
    last = StoredBatch.objects.select_for_update().get(pk=1)
    if last.name == name:  # stored, but not deleted
        return
    _add(counts)
    Usage.objects.filter(day__lt=timezone.localdate() - KEPT).delete()
    last.name = name
    last.save()


def _add(counts: Mapping[UsageKey, Mapping[str, int]]) -> None:
    people = set(
        User.objects.filter(pk__in={key.user_id for key in counts}).values_list("pk", flat=True)
    )
    days = {date.fromisoformat(key.day) for key in counts}
    rows = Rows(Usage.objects.filter(day__in=days, user__in=people))
    for key, amounts in counts.items():
        if key.user_id in people:
            rows.add(key, amounts)
    Usage.objects.bulk_create(
        rows.changed.values(),
        batch_size=500,
        update_conflicts=True,
        unique_fields=["day", "user", "key_id", "model"],
        update_fields=["key_name", *COUNTERS],
    )


class Rows:
    """The rows of some days, to which counts are added."""

    def __init__(self, stored: Iterable[Usage]) -> None:
        self._rows = {(row.day, row.user_id, row.key_id, row.model): row for row in stored}
        self._numbers = Counter((day, user_id) for day, user_id, _, _ in self._rows)
        self.changed: dict[Place, Usage] = {}

    def add(self, key: UsageKey, amounts: Mapping[str, int]) -> None:
        """Add to the row of a key and model; to that of the others where a person has too many."""
        place = _place(key)
        if place not in self._rows and self._numbers[place[:2]] >= MAX_ROWS:
            key = key.others
            place = _place(key)
        if place not in self._rows:
            self._numbers[place[:2]] += 1
            self._rows[place] = Usage(
                day=place[0], user_id=key.user_id, key_id=key.key_id, model=key.model
            )
        row = self.changed[place] = self._rows[place]
        row.key_name = key.key_name
        for counter in COUNTERS:
            setattr(row, counter, getattr(row, counter) + amounts.get(counter, 0))


def _place(key: UsageKey) -> Place:
    return date.fromisoformat(key.day), key.user_id, key.key_id, key.model
