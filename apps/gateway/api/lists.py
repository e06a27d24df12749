"""Lists of OpenAI's API: a cursor is the name of the last object of the page before."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import models
from ninja import Schema

T = TypeVar("T")
M = TypeVar("M", bound=models.Model)
MAX_LIMIT = 1000


class ListOut(Schema, Generic[T]):
    object: str = "list"
    data: list[T]
    has_more: bool
    first_id: str | None
    last_id: str | None


def list_page(
    rows: models.QuerySet[M],
    show: Callable[[M], dict[str, Any]],
    *,
    after: M | None,
    limit: int,
    newest_first: bool = True,
) -> dict[str, Any]:
    """Return one page of a list.

    Args:
        show: returns the object of a row, with its `id`.
        after: the last row of the page before.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    rows = rows.order_by("-pk" if newest_first else "pk")
    if after is not None:
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": after.pk})
    found = list(rows[: limit + 1])
    data = [show(row) for row in found[:limit]]
    return {
        "data": data,
        "has_more": len(found) > limit,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
