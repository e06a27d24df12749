"""Shared parts of the HTTP API: authentication, errors, owned objects and pages of lists."""

from collections.abc import Callable, Sequence
from typing import Generic, TypedDict, TypeVar, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db import models
from django.http import Http404, HttpRequest
from ninja import Schema
from ninja.security import HttpBearer, SessionAuth

from apps.core.errors import DomainError, ErrorPlace
from apps.core.models import ApiKey, KeyScope, OwnedQuerySet

T = TypeVar("T")
M = TypeVar("M", bound=models.Model)
PAGE_LIMIT = 100
MAX_PAGE_LIMIT = 1000


class ApiError(DomainError):
    """An error of one route alone; errors that several raise have a class of their own."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[ErrorPlace] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code = status, code
        self.errors = errors or ()
        self.retry_after = retry_after


class NotFound(DomainError, Http404):
    """An object that does not exist, or that belongs to someone else; a 404 page in views."""

    status = 404
    code = "not_found"

    def __init__(self, name: str) -> None:
        """
        Args:
            name: the kind of object, in lower case: "dataset".
        """
        super().__init__(f"No such {name}, or you do not have access to it.")


class BearerKey(HttpBearer):
    """An API key: `Authorization: Bearer wb_...`."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        key = ApiKey.find(token)
        if key is None:
            return None
        if key.scope == KeyScope.READ and request.method not in {"GET", "HEAD"}:
            raise ApiError(
                403,
                "read_only_key",
                f"The API key “{key.name}” is read only. Create a key with full access.",
            )
        request.user = key.user
        return key.user


class BrowserSession(SessionAuth):
    """The login of the browser. Ninja checks the CSRF token of every changing request."""


def owner(request: HttpRequest) -> User:
    """Return the user of a request; nobody reaches a route or a page without a login."""
    assert isinstance(request.user, User)
    return request.user


def get_owned(
    rows: "type[M] | models.QuerySet[M]", request: HttpRequest, pk: int | UUID, *, name: str = ""
) -> M:
    """Return an object of the request's user.

    Args:
        rows: a model, or a queryset of it, whose manager knows `owned_by`.
        name: the kind of object in the error message; by default the model's name.

    Raises:
        NotFound: it does not exist, or belongs to someone else.
    """
    manager = cast("OwnedQuerySet[M]", getattr(rows, "objects", rows))
    found = manager.owned_by(owner(request)).filter(pk=pk).first()
    if found is None:
        raise NotFound(name or str(manager.model._meta.verbose_name))
    return found


class Page(Schema, Generic[T]):
    items: list[T]
    next: str | None = None


class PageOf(TypedDict, Generic[T]):
    """What the schema `Page` reads."""

    items: Sequence[T]
    next: str | None


def page(
    rows: models.QuerySet[M],
    show: Callable[[M], T],
    *,
    limit: int = PAGE_LIMIT,
    after: str | None = None,
    newest_first: bool = False,
) -> PageOf[T]:
    """Return one page of a list, in the order of primary keys; the cursor is the last key shown.

    Args:
        show: turns a row into what the schema reads.

    Raises:
        ApiError: `after` is not a cursor.
    """
    limit = max(1, min(limit, MAX_PAGE_LIMIT))
    rows = rows.order_by("-pk" if newest_first else "pk")
    if after is not None:
        if not after.isdecimal():
            raise ApiError(
                400, "bad_cursor", "`after` must be the `next` value of an earlier page."
            )
        rows = rows.filter(**{"pk__lt" if newest_first else "pk__gt": int(after)})
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return {
        "items": [show(row) for row in shown],
        "next": str(shown[-1].pk) if len(found) > limit else None,
    }
