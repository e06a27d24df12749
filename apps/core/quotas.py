"""Quotas: the amount of one kind of work a person may have at a time.

Work that a request does itself (`hold`, `limited`) is counted in this process: what it takes,
memory, sockets and the model server's patience, is this process's. What lies in the database is
counted there by who adds to it (`check` within `counting`). Requests of programs are counted in
Redis, over all processes, by the gateway. Nobody waits: who is over a limit is told so at once.
"""

import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast
from weakref import WeakSet

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """One kind of work, as a person reads of it."""

    what: str
    """What they have too much of; stands after a number."""
    remedy: str
    retry_after: int | None
    """Seconds after which it is worth asking again: about as long as such a thing takes. None where
    waiting does not help."""


# By the names of WORKBENCH_LIMITS.
KINDS = {
    "requests": Kind("requests that wait for their turn", "Send fewer at once.", 2),
    "questions": Kind("answers that are being written or wait", "Wait until one has ended.", 10),
    "previews": Kind("previews that are being made", "Wait until one has ended.", 5),
    "programs": Kind("requests of programs in flight", "Wait until one has ended.", 1),
    "predictions": Kind("predictions that are being made", "Send fewer requests at once.", 1),
    "looks": Kind("servers that are being asked what they offer", "Wait for their answers.", 10),
    "uploads": Kind("uploads that are on their way", "Wait until one has arrived.", 10),
    "streams": Kind("streams of events open", "Close one.", 5),
    "readings": Kind("files that are being read", "Wait until one has been read.", 5),
    "attachments": Kind("attachments that were not sent", "Send or remove one.", None),
    "keys": Kind("API keys", "Revoke one that is no longer used.", None),
    "files": Kind("files uploaded to /v1/files", "Delete one.", None),
    "batches": Kind("batches that are not done", "Wait until one has ended.", 60),
    "shares": Kind("shared copies", "End one that is no longer needed.", None),
}


class LimitReached(Exception):
    """One person has as much of one kind of work as is allowed. The message says how much."""

    def __init__(self, kind: str, most: int) -> None:
        named = KINDS[kind]
        super().__init__(
            f"You have {most} {named.what}, and no more are allowed at a time. {named.remedy}"
        )
        self.kind = kind
        self.most = most
        self.retry_after = named.retry_after


def most(kind: str) -> int:
    """Return the limit of this kind of work per person, from the settings."""
    allowed: dict[str, int] = settings.LIMITS
    return allowed[kind]


def check(kind: str, count: int) -> None:
    """Refuses one more where a person has `count` already.

    Raises:
        LimitReached
    """
    if count >= (allowed := most(kind)):
        raise LimitReached(kind, allowed)


@contextmanager
def counting(owner: User) -> Iterator[None]:
    """Open a transaction in which nobody else adds to what this person has: count and add there.

    Otherwise two requests at the same time both find room for the last one. SQLite writes in one
    transaction after the other; PostgreSQL locks the person's row.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        yield


_lock = threading.Lock()
_held: dict[tuple[str, int], "WeakSet[hold]"] = {}


class hold(AbstractContextManager["hold"]):  # lower case, as it is used
    """A place in one kind of work, of one person, until the end of the block.

    with limits.hold(user.pk, "previews"):
        ...

    What outlives a block, as a stream does, keeps the object and calls `release`, which may be
    called twice. Where nobody can, because the request was given up before its answer began, the
    place is free when the object is gone.

    Raises:
        LimitReached: the person has them all.
    """

    def __init__(self, user_id: int, kind: str) -> None:
        self._place = (kind, user_id)
        with _lock:
            taken = _held.setdefault(self._place, WeakSet())
            check(kind, len(taken))
            taken.add(self)

    def release(self) -> None:
        """Gives the place back."""
        with _lock:
            if (taken := _held.get(self._place)) is not None:
                taken.discard(self)
                if not taken:
                    del _held[self._place]

    def __exit__(self, *error: object) -> None:
        self.release()


def hold_for(request: HttpRequest, kind: str) -> hold:
    """A place of who asks. Their login was checked: nothing is asked of the database here."""
    assert request.user.pk is not None
    return hold(int(request.user.pk), kind)


def held() -> dict[tuple[str, int], int]:
    """Return the places held in this process, by kind and person."""
    with _lock:
        return {place: len(taken) for place, taken in _held.items() if taken}


def limited(kind: str) -> Callable[[View], View]:
    """Decorate a view or a route: while it runs, its user holds a place of this kind."""

    def limit(view: View) -> View:
        @wraps(view)
        def run(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            with hold_for(request, kind):
                return view(request, *args, **kwargs)

        @wraps(view)
        async def run_coroutine(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            with hold_for(request, kind):
                return await cast(Coroutine[Any, Any, Any], view(request, *args, **kwargs))

        return cast(View, run_coroutine if iscoroutinefunction(view) else run)

    return limit
