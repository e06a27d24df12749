"""Limits the size and pace of request bodies, by sender, before a byte of them is stored.

Django writes the whole body of a request to disk before any middleware or view sees it, so this
runs before Django. A body without a length is counted as it comes. Someone who is not logged in can
send a form and no more, which never leaves memory; files are taken at upload addresses only.
"""

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import Resolver404, resolve

from apps.core import quotas
from apps.core.http.body_refusals import login_required, send_refusal, too_large, too_slow
from apps.core.http.error_pages import DISK_FULL, Refusal, refusal_for
from apps.core.http.senders import sender
from apps.runtime.async_db import in_db

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

# Enough for the form of a login.
ANONYMOUS_BYTES = 64 * 1024
# The other fields of a form with files.
FORM_FIELD_BYTES = 1024 * 1024
# A browser that is still sending reads the answer only after it has sent everything: for this long
# the rest is read and dropped.
DRAIN_SECONDS = 20.0
# After the first pause a body must arrive at this pace, and no pause may be longer.
MAX_PAUSE_SECONDS = 30.0
MIN_BYTES_PER_SECOND = 16 * 1024


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


@dataclass(frozen=True)
class Sizes:
    """Limits of one request, in bytes."""

    stranger: int
    form: int
    """From a person, at any address."""
    files: int
    """From a person, at an address that takes files."""


class BodyLimitMiddleware:
    """Wraps an ASGI application: larger or slower requests are refused with a sentence."""

    def __init__(self, application: Application, limit: int) -> None:
        """Args:
        limit: most bytes of the files in a request.
        """
        self._application = application
        self._sizes = Sizes(
            stranger=ANONYMOUS_BYTES,
            form=settings.DATA_UPLOAD_MAX_MEMORY_SIZE + FORM_FIELD_BYTES,
            files=limit + FORM_FIELD_BYTES,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._application(scope, receive, send)
            return
        body = _Body(self._sizes, scope, receive)
        try:
            await body.admit(_length(scope))
            await self._application(scope, body.receive, send)
        except _Refused as error:  # Django reads the body first: nothing has been answered yet
            await send_refusal(error.refusal, str(scope["path"]), send, body.drain)
        except OSError as error:
            if body.is_complete or error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            await send_refusal(DISK_FULL, str(scope["path"]), send, body.drain)
        finally:
            body.release()


class _Body:
    """The body of one request on its way in."""

    def __init__(self, sizes: Sizes, scope: Scope, receive: Receive) -> None:
        self._sizes, self._scope, self._receive = sizes, scope, receive
        self._most = sizes.stranger
        self._held: quotas.hold | None = None
        self._seen = 0
        self._started = time.monotonic()
        self.is_complete = False

    def release(self) -> None:
        if self._held is not None:
            self._held.release()

    async def admit(self, size: int) -> None:
        """Check that a body may have this many bytes.

        Raises:
            _Refused: it may not.
        """
        if size <= self._most:
            return
        if size > self._sizes.files:
            raise _Refused(
                too_large(self._sizes.files - FORM_FIELD_BYTES, "Split it into several files.")
            )
        person = await in_db(sender, self._scope["headers"])
        if person is None:
            raise _Refused(login_required(self._sizes.stranger))
        if size <= self._sizes.form:
            self._most = self._sizes.form
            return
        if not _takes_files(str(self._scope["path"])):
            raise _Refused(too_large(self._sizes.form, "This address takes no files."))
        if self._held is None:
            try:
                self._held = quotas.hold(person, "uploads")
            except quotas.LimitReached as error:
                refusal = refusal_for(error)
                assert refusal is not None
                raise _Refused(refusal) from error
        self._most = self._sizes.files

    async def receive(self) -> Message:
        if self.is_complete:  # the next message is the end of the connection
            return await self._receive()
        deadline = self._started + MAX_PAUSE_SECONDS + self._seen / MIN_BYTES_PER_SECOND
        seconds_left = min(MAX_PAUSE_SECONDS, deadline - time.monotonic())
        if seconds_left <= 0:
            raise _Refused(too_slow(MAX_PAUSE_SECONDS, MIN_BYTES_PER_SECOND))
        try:
            async with asyncio.timeout(seconds_left):
                message = await self._receive()
        except TimeoutError:
            raise _Refused(too_slow(MAX_PAUSE_SECONDS, MIN_BYTES_PER_SECOND)) from None
        self._seen += len(message.get("body", b""))
        self.is_complete = not message.get("more_body")
        await self.admit(self._seen)
        return message

    async def drain(self) -> None:
        """Read and drop the rest of the body, for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while not self.is_complete:
                    message = await self._receive()
                    self.is_complete = not message.get("more_body")


def _takes_files(path: str) -> bool:
    try:
        return resolve(path).route in settings.UPLOAD_ROUTES
    except Resolver404:
        return False


def _has_body(scope: Scope) -> bool:
    """True if the request may have a body: without a length, only GET and the like have none."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or name == b"content-length":
            return bool(value != b"0")
    return scope.get("method") not in {"GET", "HEAD", "OPTIONS"}


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:20])
    return 0
