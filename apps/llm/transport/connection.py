"""The connection to one model server: sends requests, and hands their responses on unread.

Exceptions of the SDK, httpx and aiohttp become those of `apps.llm.errors`.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from apps.llm import errors, timeouts
from apps.llm.endpoint import Endpoint
from apps.llm.failures.request_fields import refused_fields, without
from apps.llm.response_reader import ResponseReader

if TYPE_CHECKING:
    from apps.llm.transport.sdk import AsyncOpenAI

# A server that refuses one field after the other names them all in this many attempts.
MAX_REFUSED_FIELDS = 12
# In the pool, found to be closed one after the other by one request.
MAX_CLOSED_CONNECTIONS = 8
NO_HEADERS: Mapping[str, str] = {}

T = TypeVar("T")


class ServerConnection:
    """Requests to the routes of one server, from one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._refused: dict[str, frozenset[str]] = {}
        self._last_used = -math.inf

    @cached_property
    def _sdk(self) -> "AsyncOpenAI":
        """Created at the first request: a bad address then fails as requests do."""
        from apps.llm.transport.sdk import make_sdk

        return make_sdk(self.endpoint)

    async def aclose(self) -> None:
        if sdk := vars(self).get("_sdk"):
            await sdk.close()

    async def get(self, path: str) -> Any:
        """Return the decoded answer of one of the server's own routes, such as "/props".

        Raises:
            LLMError: no JSON answer with status 200.
        """
        with translated_errors():
            return await self._send(
                lambda: self._sdk.get(
                    self.endpoint.root + path,
                    cast_to=object,
                    options={"timeout": timeouts.NATIVE_SECONDS},
                )
            )

    async def get_headers(self, path: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers of the answer of one of the server's own routes; their case is free.

        Args:
            headers: to be sent, beside those of every request.

        Raises:
            LLMError: another status than 200, or no answer in time.
        """
        with translated_errors():
            url = self.endpoint.root + path
            response = await self._open(
                "GET", url, headers=headers, first_byte=timeouts.NATIVE_SECONDS
            )
            await response.aclose()
        return response.headers

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield the lines of one of the server's own routes as they arrive, without empty ones.

        Raises:
            LLMError: another status than 200, or the connection broke.
        """
        with translated_errors():
            response = await self._open("GET", self.endpoint.root + path)
            try:
                body, rest = self._reader(response), b""
                while data := await body.read():
                    *lines, rest = (rest + data).split(b"\n")
                    for line in filter(None, lines):
                        yield line
            finally:
                await response.aclose()

    async def post(
        self, path: str, body: Mapping[str, object], *, seconds: float | None = None
    ) -> Any:
        """Like `get`, for routes that take a body."""
        limit = timeouts.NATIVE_SECONDS if seconds is None else seconds
        with translated_errors():
            return await self._send(
                lambda: self._sdk.post(
                    self.endpoint.root + path,
                    cast_to=object,
                    body=body,
                    options={"timeout": limit},
                )
            )

    async def delete(self, path: str) -> Any:
        """Like `get`, for routes that delete something."""
        with translated_errors():
            return await self._send(
                lambda: self._sdk.delete(
                    self.endpoint.root + path,
                    cast_to=object,
                    options={"timeout": timeouts.NATIVE_SECONDS},
                )
            )

    async def open_post(
        self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] = NO_HEADERS
    ) -> httpx2.Response:
        """Send a request without the fields that this server refuses for the model.

        A server that refuses fields names them: the request is sent again without them, and that
        is remembered.
        """
        model = str(body["model"])
        known = self.endpoint.refuses.get(model, frozenset())
        refused = known | self._refused.get(model, frozenset())
        while True:
            sent = without(body, refused) if refused else body
            try:
                response = await self._open("POST", path, sent, headers)
            except Exception as error:
                status = getattr(error, "status_code", None)
                if status not in {400, 422} or len(refused) > MAX_REFUSED_FIELDS:
                    raise
                new = refused_fields(status, getattr(error, "body", None), sent)
                if not new:
                    raise
                refused |= new
                continue
            if refused - known:
                self._refused[model] = refused
                if self.endpoint.on_refused is not None:
                    await self.endpoint.on_refused(model, refused)
            return response

    async def _open(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        first_byte: float | None = None,
    ) -> httpx2.Response:
        """Send a request; return its response, unread."""
        from apps.llm.transport import sdk

        return await self._send(
            lambda: sdk.open_stream(
                self._sdk,
                method,
                url,
                body,
                headers=headers,
                first_byte=first_byte or timeouts.FIRST_BYTE_SECONDS,
            )
        )

    async def _send(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request, again where its connection was closed before it was used.

        A reused connection may be closed by the server in the very moment of its use. The request
        is then sent again; never after the first byte of an answer. llama.cpp closes connections
        after 100 requests, so several that were opened together may be closed together.
        """
        from apps.llm.transport import sdk

        loop = asyncio.get_running_loop()
        may_be_reused = loop.time() - self._last_used < timeouts.REUSE_SECONDS
        retries = MAX_CLOSED_CONNECTIONS if may_be_reused else 0
        while True:
            try:
                answer = await send()
            except Exception as error:
                if sdk.was_answered(error):
                    self._note_use()
                if not retries or not sdk.was_disconnected(error):
                    raise
                retries -= 1
                continue
            self._note_use()
            return answer

    def _reader(self, response: httpx2.Response) -> ResponseReader:
        return ResponseReader(response, at_end=self._note_use)

    def _note_use(self) -> None:
        """Note that a connection has just been used, and may be in the pool."""
        self._last_used = asyncio.get_running_loop().time()


class translated_errors:
    """Turns exceptions of the SDK, httpx and aiohttp into ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, errors.LLMError):
            return
        from apps.llm.transport.sdk import translate

        if ours := translate(error):
            raise ours from error
