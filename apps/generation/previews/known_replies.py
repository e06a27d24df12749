"""Replies of earlier previews, used again where the same request would be sent (pure).

While a recipe is edited, most requests of its first rows stay the same. Only those that an edit
changes are sent to the model: the changed column, and the columns that continue from it.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from typing import Annotated

from annotated_types import Ge, Le, Len
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from apps.llm.client import ChatRequest, Client, Completion
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion

MAX_REPLIES = 400  # 10 rows of 10 columns, each with a repeated request, and room for more
Tokens = Annotated[int, Ge(0), Le(10**9)]


class Reply(BaseModel):
    """One reply of the model, as the page keeps it between two previews."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    request: Annotated[str, Len(64, 64)]
    """The digest of its request, see `digest`."""
    text: str
    reasoning: str
    finish_reason: str
    prompt_tokens: Tokens
    cached_tokens: Tokens
    completion_tokens: Tokens
    tokens_per_second: float | None
    tells_cached: bool
    is_estimated: bool
    drafted: Tokens = 0
    draft_accepted: Tokens = 0
    seconds: Annotated[float, Ge(0), Le(10**6)]

    @property
    def completion(self) -> Completion:
        usage = Usage(
            self.prompt_tokens,
            self.cached_tokens,
            self.completion_tokens,
            self.tokens_per_second,
            self.tells_cached,
            self.is_estimated,
            self.drafted,
            self.draft_accepted,
        )
        return Completion(self.text, self.reasoning, self.finish_reason, usage)


_REPLIES = TypeAdapter(Annotated[list[Reply], Len(0, MAX_REPLIES)])


def read_replies(text: str) -> dict[str, Reply]:
    """The replies that the page sends back, by the digests of their requests.

    Replies that cannot be read are left out: their requests are sent again.
    """
    try:
        replies = _REPLIES.validate_json(text or "[]")
    except ValidationError:
        return {}
    return {reply.request: reply for reply in replies}


def write_replies(replies: Iterable[Reply]) -> str:
    """The replies as `read_replies` takes them."""
    return json.dumps([reply.model_dump() for reply in replies], ensure_ascii=False)


def digest(server: int, request: ChatRequest) -> str:
    """Equal for equal requests to one server."""
    parts = [server, request.body(progress=False)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class UnknownReply(Exception):
    """A request whose reply is not known."""


class RecordedCompletion(ResumableCompletion):
    """Answers of one row: known replies where there are any, the model's elsewhere.

    Every reply that the row used is in `used`.
    """

    def __init__(self, server: int, known: Mapping[str, Reply], *, may_ask: bool) -> None:
        """
        Args:
            server: the key of the server.
            may_ask: send other requests to the model; else they raise `UnknownReply`.
        """
        super().__init__()
        self._server, self._known, self._may_ask = server, known, may_ask
        self.used: list[Reply] = []
        self.asked = 0
        """Requests that were sent."""
        self.spent = Usage(0, 0, 0)
        """Tokens of these."""

    async def complete(self, client: Client, request: ChatRequest) -> Completion:
        """
        Raises:
            UnknownReply: the reply is not known, and the model may not be asked.
            LLMError: the answer is not complete.
        """
        key = digest(self._server, request)
        if (reply := self._known.get(key)) is not None:
            self.used.append(reply)
            return reply.completion
        if not self._may_ask:
            raise UnknownReply
        started = time.monotonic()
        completion = await super().complete(client, request)
        self.asked += 1
        self.spent += completion.usage
        self.used.append(_recorded(key, completion, time.monotonic() - started))
        return completion


def _recorded(key: str, completion: Completion, seconds: float) -> Reply:
    usage = completion.usage
    return Reply(
        request=key,
        text=completion.text,
        reasoning=completion.reasoning,
        finish_reason=completion.finish_reason,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        tokens_per_second=usage.tokens_per_second,
        tells_cached=usage.tells_cached,
        is_estimated=usage.is_estimated,
        seconds=seconds,
    )
