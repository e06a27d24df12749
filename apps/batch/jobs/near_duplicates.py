"""Rejecting and restoring many rows by a near-duplicate threshold."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from apps.batch.jobs.review import delete_unstarted_replacements
from apps.batch.models import Item, ItemStatus


def reject_near_duplicates(rows: Sequence[tuple[str, str, int]]) -> int:
    """Reject accepted rows that nobody reviewed, by (code, reason, key). Returns the number."""
    with transaction.atomic():
        return _update_each(
            "status = 'rejected', code = %s, reason = %s",
            "AND status = 'accepted' AND NOT reviewed",
            rows,
        )


def restore_near_duplicates(batch_id: int, keys: Sequence[int], prints: dict[int, str]) -> int:
    """Accept rejected rows, except those whose fingerprint an accepted row has already.

    Args:
        prints: fingerprint by row key; rows without free text have none.

    Returns the number of restored rows.
    """
    with transaction.atomic():
        rejected = Item.objects.filter(pk__in=keys, status=ItemStatus.REJECTED)
        items = list(rejected.order_by("index").only("pk", "index", "input", "replaced"))
        accepted = Item.objects.filter(
            batch_id=batch_id, status=ItemStatus.ACCEPTED, fingerprint__in=set(prints.values())
        )
        taken = dict(accepted.values_list("fingerprint", "index"))
        restored: list[tuple[str | None, int]] = []
        duplicates: list[tuple[str, int]] = []
        replaced: list[Item] = []
        for item in items:
            fingerprint = prints.get(item.pk)
            if fingerprint is not None and fingerprint in taken:
                duplicates.append((f"Duplicate of row {taken[fingerprint] + 1}.", item.pk))
                continue
            if fingerprint is not None:
                taken[fingerprint] = item.index
            restored.append((fingerprint, item.pk))
            replaced += [item] if item.replaced else []
        _update_each(
            "status = 'accepted', code = '', reason = '', fingerprint = %s",
            "AND status = 'rejected'",
            restored,
        )
        _update_each("code = 'duplicate', reason = %s", "", duplicates)
        delete_unstarted_replacements(batch_id, replaced)
    return len(restored)


def store_minhashes(rows: Sequence[tuple[bytes, int]]) -> None:
    """Store the signatures of rows that have none, by (signature, key)."""
    _update_each("minhash = %s", "AND minhash IS NULL", rows)


def _update_each(assignments: str, condition: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run one UPDATE per row, its key last; returns the number of changed rows.

    One prepared statement: the ORM would compile a query for each of thousands of rows.
    """
    if not rows:
        return 0
    table = connection.ops.quote_name(Item._meta.db_table)
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {table} SET {assignments} WHERE id = %s {condition}",  # noqa: S608 - ours
            rows,
        )
        changed: int = cursor.rowcount
    return changed
