"""The answer of a request that gives its slot back: kept, and gone on with where the server can."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from apps.gateway.continuing.chunks import (
    DONE,
    MIN_CHARACTERS,
    Chunk,
    beginning_of,
    is_json,
    json_bytes,
    read_chunks,
    whole_answer,
)
from apps.gateway.continuing.count import Asked, count_tokens
from apps.gateway.continuing.join import Written, joined
from apps.gateway.continuing.shape import can_continue, continued, is_greedy, wants_json
from apps.gateway.program_request import ProgramRequest
from apps.llm import errors

JSON = "application/json; charset=utf-8"
# Addresses of servers that begin a grammar afresh in the middle of an answer: older builds.
starting_afresh: set[str] = set()


class Draft:
    """What there is of an answer that is sent when it is complete.

    draft = Draft(request)
    body = draft.body_for(asked)       # of each attempt
    draft.pieces.append(data)          # as it comes
    await draft.keep()                 # where the slot was taken
    pieces = draft.finish()
    """

    def __init__(self, request: ProgramRequest) -> None:
        self._request = request
        self._is_plain = can_continue(request.path, request.fields)
        self._wants_json = wants_json(request.fields)
        self._kept = Written()
        self._asked: Asked | None = None
        self._since = 0.0
        self.pieces: list[bytes] = []
        """Of this attempt."""
        self.restarts = 0
        self.continued = 0
        """How often the server went on with the answer that is kept."""

    def is_of(self, request: ProgramRequest) -> bool:
        """True if it is the answer to this request."""
        return (request.path, request.fields) == (self._request.path, self._request.fields)

    @property
    def is_rewritten(self) -> bool:
        """The answer is not the server's own bytes."""
        return self._is_read and not (self._request.is_streamed and not self._kept.chunks)

    @property
    def _is_read(self) -> bool:
        return self._asked is not None and self.goes_on_at(self._asked)

    def goes_on_at(self, asked: Asked) -> bool:
        """True if nothing is lost where the slot is taken there, as far as is known before."""
        if not self._is_plain or not asked.continues:
            return False
        return not (self._wants_json and asked.client.endpoint.base_url in starting_afresh)

    def body_for(self, asked: Asked) -> bytes:
        """Return the body of the next attempt, which is expected from now on."""
        before, self._asked, self.pieces = self._asked, asked, []
        self.begin()
        if self._kept.chunks and before is not None and before.client is not asked.client:
            self.begin_again()
        if not self.is_rewritten:
            return self._request.body_for(asked.model)
        return json.dumps(self._fields(asked), ensure_ascii=True).encode()

    def _fields(self, asked: Asked) -> dict[str, Any]:
        fields = {**self._request.fields, "model": asked.model}
        if not self._request.is_streamed:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
            if asked.client.endpoint.tells_progress:
                fields["return_progress"] = True  # it then stops while it reads the prompt, too
            if self._wants_json:
                fields["timings_per_token"] = True  # see `_written`
        if not self._kept.chunks:
            return fields
        return continued(self._request.path, fields, self._kept.text, self._kept.tokens)

    def begin(self) -> None:
        """Note that the answer begins to come: its time counts from now on."""
        self._since = time.perf_counter()

    def begin_again(self) -> None:
        """Give up what there is."""
        self.restarts, self.continued = self.restarts + 1, 0
        self._kept = Written()

    def gave_up(self, error: errors.LLMError) -> bool:
        """Begin again where the server cannot go on; False: it fails for another reason."""
        if error.transient or not self._kept.chunks:
            return False
        self.begin_again()
        return True

    async def keep(self) -> None:
        """Keep what came until the slot was taken, as far as the server can go on from there."""
        asked, seconds = self._asked, time.perf_counter() - self._since
        if not self._is_read or asked is None:
            self.begin_again()
            return
        try:
            chunks = await asyncio.to_thread(self._chunks)
            kept = await self._counted(asked, beginning_of(chunks))
            kept.seconds = self._kept.seconds + seconds
            continued(self._request.path, self._request.fields, kept.text, kept.tokens)
        except (ValueError, errors.LLMError):
            self.begin_again()
            return
        self._kept, self.continued = kept, self.continued + 1

    async def _counted(self, asked: Asked, chunks: list[Chunk]) -> Written:
        """Count the tokens of a beginning as the server will.

        Raises:
            ValueError: it is too short, or the server would not read what it wrote.
        """
        kept = Written(chunks)
        if len(kept.text) < MIN_CHARACTERS:
            raise ValueError
        written = self._written(chunks)
        counted = await count_tokens(asked, self._request, kept.text)
        if is_greedy(self._request.fields) and counted != written:
            raise ValueError  # other tokens, of which other ones may follow
        kept.tokens = written if counted is None else counted
        return kept

    def _written(self, chunks: list[Chunk]) -> int:
        """Return how many tokens the server wrote until then.

        Raises:
            ValueError: nobody knows. White space before JSON is cut away, and only counted.
        """
        if not self._wants_json or not is_greedy(self._request.fields):
            return sum(bool(chunk.text) for chunk in chunks)
        written = chunks[-1].data.get("timings", {}).get("predicted_n")
        if not isinstance(written, int):
            raise ValueError
        return written

    def _chunks(self) -> list[Chunk]:
        """Return all of the answer.

        Raises:
            LLMError: it is none, or does not go on with what is kept.
        """
        return self._kept.chunks + joined(self._kept, read_chunks(self.pieces))

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the server would have sent instead of its own."""
        is_whole = self.is_rewritten and not self._request.is_streamed
        return {"content-type": JSON} if is_whole else {}

    async def finish(self) -> list[bytes]:
        """Return the pieces of the whole answer.

        Raises:
            LLMError: it is not complete; NotSupported: the server did not go on with what is kept.
        """
        return await asyncio.to_thread(self._finish) if self.is_rewritten else self.pieces

    def _finish(self) -> list[bytes]:
        chunks = self._chunks()
        if self._wants_json and self._kept.chunks:
            self._check_json(chunks)
        if not self._request.is_streamed:
            return [json_bytes(whole_answer(chunks))]
        if not any(chunk.is_last for chunk in chunks):
            raise errors.CutOff(errors.CUT_OFF)
        return [*(chunk.as_event() for chunk in chunks), DONE]

    def _check_json(self, chunks: list[Chunk]) -> None:
        """Refuse an answer in parts that should be JSON and is not, and ask for it whole.

        Raises:
            NotSupported: as said.
        """
        if is_json("".join(chunk.text for chunk in chunks)):
            return
        # One that a limit or a stop sequence cut may be right: nobody can tell.
        is_whole = any(chunk.ends_by_itself for chunk in chunks)
        if is_whole and self._asked and not self._request.fields.get("stop"):
            starting_afresh.add(self._asked.client.endpoint.base_url)
        self._is_plain = False
        raise errors.NotSupported("The model server did not go on with its answer.")
