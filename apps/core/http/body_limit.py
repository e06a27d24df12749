"""Limits the size and pace of request bodies, by sender, before a byte of them is stored.

Django writes the whole body of a request to disk before any middleware or view sees it. This stands
before Django. A body that names no length is counted as it comes. Who is not known here can send a
form and no more, which never leaves memory; files are taken at the addresses that want files.
"""

import asyncio
import errno
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import Resolver404, resolve

from apps.core import quotas
from apps.core.http.error_pages import API, DISK_FULL, Refusal, refusal_for
from apps.core.http.senders import sender
from apps.runtime.async_db import in_db

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

# What anybody may send: the form of a login.
ANONYMOUS_BYTES = 64 * 1024
# What a form says besides its files.
FORM_FIELD_BYTES = 1024 * 1024
# A browser that is still sending reads the answer only when it may go on sending: what it sends is
# thrown away for so long.
DRAIN_SECONDS = 20.0
# A body is to come at this pace after a while, and no pause may be longer.
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
            await _refuse(error.refusal, scope, body, send)
        except OSError as error:
            if body.is_complete or error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            await _refuse(DISK_FULL, scope, body, send)
        finally:
            body.release()


class _Body:
    """The body of one request on its way in."""

    def __init__(self, sizes: Sizes, scope: Scope, receive: Receive) -> None:
        self._sizes, self._scope, self._receive = sizes, scope, receive
        self._most = sizes.stranger
        self._held: quotas.hold | None = None
        self._seen = 0
        self._begun = time.monotonic()
        self.is_complete = False

    def release(self) -> None:
        if self._held is not None:
            self._held.release()

    async def admit(self, size: int) -> None:
        """Raises _Refused where so many bytes may not come."""
        if size <= self._most:
            return
        if size > self._sizes.files:
            raise _too_large(self._sizes.files - FORM_FIELD_BYTES, "Split it into several files.")
        person = await in_db(sender, self._scope["headers"])
        if person is None:
            raise _Refused(_stranger(self._sizes.stranger))
        if size <= self._sizes.form:
            self._most = self._sizes.form
            return
        if not _takes_files(str(self._scope["path"])):
            raise _too_large(self._sizes.form, "This address takes no files.")
        if self._held is None:
            try:
                self._held = quotas.hold(person, "uploads")
            except quotas.LimitReached as error:
                refusal = refusal_for(error)
                assert refusal is not None
                raise _Refused(refusal) from error
        self._most = self._sizes.files

    async def receive(self) -> Message:
        if self.is_complete:  # what comes now is the end of the connection
            return await self._receive()
        at_this_pace = self._begun + MAX_PAUSE_SECONDS + self._seen / MIN_BYTES_PER_SECOND
        patience = min(MAX_PAUSE_SECONDS, at_this_pace - time.monotonic())
        if patience <= 0:
            raise _Refused(_slow())
        try:
            async with asyncio.timeout(patience):
                message = await self._receive()
        except TimeoutError:
            raise _Refused(_slow()) from None
        self._seen += len(message.get("body", b""))
        self.is_complete = not message.get("more_body")
        await self.admit(self._seen)
        return message

    async def drain(self) -> None:
        """Throws away what still comes."""
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


def _too_large(most: int, remedy: str) -> _Refused:
    size = f"{most // 1024**2} MB" if most >= 1024**2 else f"{most // 1024} KB"
    detail = f"This is larger than {size}, which is the most that can come at once. {remedy}"
    return _Refused(Refusal(413, "too_large", detail))


def _stranger(most: int) -> Refusal:
    return Refusal(
        401,
        "unauthorized",
        f"Log in, or send a valid key as `Authorization: Bearer wb_...`: more than {most // 1024} "
        "KB are taken from people who are known here.",
    )


def _slow() -> Refusal:
    pace = MIN_BYTES_PER_SECOND // 1024
    return Refusal(
        408,
        "too_slow",
        f"The request did not arrive: after {MAX_PAUSE_SECONDS:.0f} seconds it must come with "
        f"{pace} KB a second. Try again with a better connection.",
    )


async def _refuse(refusal: Refusal, scope: Scope, body: _Body, send: Send) -> None:
    is_api_path = str(scope["path"]).startswith(API)
    said = {"code": refusal.code, "detail": refusal.detail, "errors": []}
    text = (json.dumps(said) if is_api_path else refusal.detail).encode()
    kind = "application/json" if is_api_path else "text/plain; charset=utf-8"
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(text)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    if refusal.status != 408:
        await body.drain()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _has_body(scope: Scope) -> bool:
    """Without either header only a method that has none by its nature is believed."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or name == b"content-length":
            return bool(value != b"0")
    return scope.get("method") not in {"GET", "HEAD", "OPTIONS"}


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:20])
    return 0
