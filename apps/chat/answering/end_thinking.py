"""“Answer now”: ends the thought of a running answer."""

from apps.chat.answering.outcome import Outcome
from apps.servers.services import Target

# llama.cpp ends a thought within its next tokens. A server that says so and thinks on has not.
GRACE_TOKENS = 32


class ThoughtNotEnded(Exception):
    """The server cannot end a thought: the request has to be sent again without thinking."""


class ThoughtControl:
    """The thought of the request that an answer is waiting for."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._target: Target | None = None
        self._completion_id = ""
        self._max_tokens: int | None = None
        """With more tokens than this, a thought has not ended as it was told to."""

    def start_request(self, target: Target) -> None:
        self._target, self._completion_id, self._max_tokens = target, "", None

    def record_id(self, completion_id: str) -> None:
        self._completion_id = completion_id

    async def end(self) -> None:
        """Have the server end the thought; without one, nothing happens."""
        target, outcome = self._target, self._outcome
        if target is None or not outcome.is_thinking:
            return
        is_told = bool(self._completion_id) and await target.client.end_thinking(
            self._completion_id, target.model
        )
        self._max_tokens = outcome.tokens + (GRACE_TOKENS if is_told else 0)

    def check(self) -> None:
        """
        Raises:
            ThoughtNotEnded: the thought goes on, although it was to end.
        """
        outcome, limit = self._outcome, self._max_tokens
        if limit is not None and outcome.is_thinking and outcome.tokens > limit:
            raise ThoughtNotEnded
