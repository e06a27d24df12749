"""Resumes the answers of a row whose slot was taken, so that no token is generated twice.

A person's question closes the youngest row's request, and the row waits for a slot again. The text
it has received is still good: complete answers are reused, and llama.cpp continues a partial one
(an assistant's message at the end of the prompt is continued, and the grammar of an answer's format
with it). Processing this text takes a tenth of the time of generating it, and less where the prompt
cache still has it. Without this, a job on a busy server would lose a part of every row, and on a
server with a single slot it could stop making progress.
"""

import json

from apps.llm import errors
from apps.llm.client import ChatRequest, Client, Completion, PartialCompletion


class ResumableCompletion:
    """The answers of one row, in memory: a row that starts elsewhere starts from nothing."""

    def __init__(self, *, can_continue: bool = False) -> None:
        """
        Args:
            can_continue: the server continues a partial answer.
        """
        self.can_continue = can_continue
        self.kept: object = None
        """What a handler keeps that sends its requests itself."""
        self._completed: list[tuple[ChatRequest, Completion]] = []
        self._position = 0
        self._partial = PartialCompletion()
        self._partial_request: ChatRequest | None = None

    def restart(self) -> "ResumableCompletion":
        """Expect the row's requests again, from the first on."""
        self._position = 0
        return self

    async def complete(self, client: Client, request: ChatRequest) -> Completion:
        """Return the complete answer to the row's next request, as `Client.complete` does.

        Raises:
            LLMError: the answer is not complete.
        """
        number, self._position = self._position, self._position + 1
        if number < len(self._completed):
            earlier, completion = self._completed[number]
            if earlier == request:
                return completion
            del self._completed[number:]  # the recipe was edited meanwhile
        if self._partial_request != request or not self.can_continue:
            self._partial_request, self._partial = request, PartialCompletion()
        completion = await self._finish(client, request)
        self._completed.append((request, completion))
        self._partial = PartialCompletion()
        return completion

    async def _finish(self, client: Client, request: ChatRequest) -> Completion:
        if not self._partial.text:
            return await client.complete(request, self._partial)
        try:
            completion = await client.complete(request, self._partial)
            if _is_valid(completion, request):
                return completion
        except errors.LLMError as error:
            if error.transient:
                raise
        # This server does not continue: its template puts thinking first, or it is an older build
        # whose grammar starts again. The answer is generated from its beginning.
        self._partial = PartialCompletion()
        return await client.complete(request, self._partial)


def _is_valid(completion: Completion, request: ChatRequest) -> bool:
    """False if an answer in two parts should be JSON and is not."""
    if request.response_format is None or completion.finish_reason != "stop":
        return True
    try:
        json.loads(completion.text)
    except (ValueError, RecursionError):
        return False
    return True
