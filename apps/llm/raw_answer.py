"""A model server's answer to another program's request: bytes that nobody here decodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2

from apps.llm.errors import LLMError
from apps.llm.response_reader import ResponseReader
from apps.llm.transport.connection import translated_errors


class RawAnswer:
    """The status, the headers and the body of an answer, which arrives in pieces."""

    def __init__(self, response: httpx2.Response, body: ResponseReader) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._body = body

    async def read(self) -> bytes:
        """Return the next piece of the body; b"" at its end.

        Raises:
            LLMError: the rest of the body does not come.
        """
        with translated_errors():
            return await self._body.read()

    async def aclose(self) -> None:
        """End the request: the server's slot is free at once."""
        await self._response.aclose()


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """What a model server answered instead."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def refused_answer(error: LLMError) -> RefusedAnswer | None:
    """Return the reply behind an error; None where the server did not reply."""
    from apps.llm.transport.sdk import ReplyFailed

    cause = error.__cause__
    if not isinstance(cause, ReplyFailed):
        return None
    return RefusedAnswer(cause.status_code, cause.headers, cause.content)
