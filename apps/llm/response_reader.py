"""The body of a streamed response, read with time limits."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx2

from apps.llm import errors, timeouts
from apps.runtime.time_limit import time_limit


class ResponseReader:
    """Reads the pieces of a response as they arrive.

    Skips httpx's decoding generators where nothing is compressed: they are work per token.
    """

    def __init__(
        self, response: httpx2.Response, at_end: Callable[[], object] = lambda: None
    ) -> None:
        """
        Args:
            at_end: called at the end of the body: from then on others may use the connection.
        """
        self._at_end = at_end
        is_encoded = "content-encoding" in response.headers
        self._pieces = _pieces(response) if is_encoded else _raw_pieces(response)
        self._clock = asyncio.get_running_loop().time
        self._last_content = self._clock()

    async def read(self) -> bytes:
        """The next piece of the body; b"" at its end.

        Raises:
            Stalled: nothing arrived for GAP_SECONDS, or only comments for QUIET_SECONDS.
            httpx2.TransportError: the connection broke.
        """
        quiet_left = self._last_content + timeouts.QUIET_SECONDS - self._clock()
        try:
            with time_limit(min(timeouts.GAP_SECONDS, max(0.0, quiet_left))):
                data = await anext(self._pieces, b"")
        except TimeoutError:
            raise errors.Stalled(
                "The model server stopped sending in the middle of its answer. It may be stuck."
            ) from None
        if not data:
            self._at_end()
        if not data.startswith(b":") or b"data:" in data:
            self._last_content = self._clock()
        return data

    async def read_all(self) -> bytes:
        """The whole body. Errors: see `read`."""
        pieces = []
        while data := await self.read():
            pieces.append(data)
        return b"".join(pieces)


def _pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    return response.aiter_bytes()


def _raw_pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return aiter(response.stream)
