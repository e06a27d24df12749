"""What a row had been told when its slot was taken: nothing of it is asked for twice.

A person's question closes the youngest row's request, and the row waits for a slot again. What the
model had written of it is still good: whole answers are taken as they are, and llama.cpp goes on
from a begun one (an assistant's message at the end of the prompt is continued, and the grammar of
an answer's format with it). Reading what was written takes a tenth of the time of writing it, and
less where the server's cache has it still. Without this a job on a busy server would lose a part of
every row, and one with a single slot could come to a standstill.
"""

import json

from apps.llm import errors
from apps.llm.client import Begun, ChatRequest, Client, Completion


class Draft:
    """The answers of one row. Lives in memory: whoever starts the row elsewhere starts it anew."""

    def __init__(self, *, goes_on: bool = False) -> None:
        """
        Args:
            goes_on: whether the server goes on from a begun answer.
        """
        self._goes_on = goes_on
        self._said: list[tuple[ChatRequest, Completion]] = []
        self._asked = 0
        self._begun = Begun()
        self._of: ChatRequest | None = None

    def again(self) -> "Draft":
        """Its requests come once more, from the first on."""
        self._asked = 0
        return self

    async def complete(self, client: Client, request: ChatRequest) -> Completion:
        """The whole answer to the row's next request: as `Client.complete`.

        Raises:
            LLMError: anything short of a complete answer.
        """
        number, self._asked = self._asked, self._asked + 1
        if number < len(self._said):
            asked, completion = self._said[number]
            if asked == request:
                return completion
            del self._said[number:]  # the recipe was changed meanwhile
        if self._of != request or not self._goes_on:
            self._of, self._begun = request, Begun()
        completion = await self._whole(client, request)
        self._said.append((request, completion))
        self._begun = Begun()
        return completion

    async def _whole(self, client: Client, request: ChatRequest) -> Completion:
        if not self._begun.text:
            return await client.complete(request, self._begun)
        try:
            completion = await client.complete(request, self._begun)
            if _fits(completion, request):
                return completion
        except errors.LLMError as error:
            if error.transient:
                raise
        # It does not go on from there: a template that thinks first, or an older server whose
        # grammar begins anew. From the start, then.
        self._begun = Begun()
        return await client.complete(request, self._begun)


def _fits(completion: Completion, request: ChatRequest) -> bool:
    """Whether an answer in two parts is what was asked for: JSON, where it was to be that."""
    if request.response_format is None or completion.finish_reason != "stop":
        return True
    try:
        json.loads(completion.text)
    except ValueError:
        return False
    return True
