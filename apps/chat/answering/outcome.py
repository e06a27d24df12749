"""What became of an answer: how it ended, and the numbers of its way there."""

import time
from dataclasses import dataclass, field
from typing import Any

from apps.chat.models import Status
from apps.chat.prompt import build
from apps.chat.tools import calling
from apps.llm.events import Progress, Usage
from apps.servers.models import Server

INTERRUPTED = "interrupted"
INTERRUPTED_DETAIL = "Workbench was stopped while generating this answer. Retry."
WAITED_DETAIL = (
    "The workbench was stopped while a call waited for you. "
    "Decide about it, and the answer goes on."
)


@dataclass
class Outcome:
    """What became of an answer. Filled while it runs, saved at its end however it ends."""

    status: Status = Status.INTERRUPTED
    error_code: str = INTERRUPTED
    error_detail: str = INTERRUPTED_DETAIL
    finish_reason: str = ""
    model: str = ""
    max_tokens: int | None = None
    """What the newest round was allowed, however many requests it took; None: none was sent."""
    cut_before_message: int | None = None
    head: build.Head = field(default_factory=build.Head)
    ask: build.Ask | None = None
    server: Server | None = None
    progress: Progress | None = None
    usage: Usage | None = None
    gathered: calling.Gathered = field(default_factory=calling.Gathered)
    has_called: bool = False
    tokens: int = 0
    """Of the newest request."""
    carried: int = 0
    """Of the round, in requests that broke off."""
    sent_again: int = 0
    """Of those: what the newest request has in its prompt. Thoughts are not sent."""
    sent: float = 0.0
    first_token: float | None = None
    first_thought: float | None = None
    first_word: float | None = None
    last_token: float = 0.0
    _thoughts: int = 0

    def ended(
        self, status: Status, finish_reason: str = "", *, code: str = "", detail: str = ""
    ) -> None:
        self.status, self.finish_reason = status, finish_reason
        self.error_code, self.error_detail = code, detail

    def begin(self, max_tokens: int | None) -> None:
        """A round is begun; a request that goes on from a broken one is sent only what is left."""
        self.max_tokens = max_tokens
        self.tokens = self._thoughts = self.carried = self.sent_again = 0

    def carry(self) -> None:
        """The next request goes on from what has been written."""
        self.carried += self.tokens
        self.sent_again += self.tokens - self._thoughts
        self.tokens = self._thoughts = 0
        self.usage = self.progress = None

    def count_progress(self, progress: Progress) -> None:
        """The prompt is being read: of this request nothing has been written."""
        self.progress, self.usage = progress, None
        self.tokens = self._thoughts = 0

    def count_token(self, *, is_thought: bool = False) -> None:
        self.last_token = time.perf_counter()
        self.tokens += 1
        self._thoughts += is_thought
        if self.first_token is None:
            self.first_token = self.last_token
        if is_thought and self.first_thought is None:
            self.first_thought = self.last_token
        if not is_thought and self.first_word is None:
            self.first_word = self.last_token

    def reasoning_ms(self) -> float | None:
        """From the first thought to the first word of the answer, or to the end without one."""
        if self.first_thought is None:
            return None
        return round(((self.first_word or self.last_token) - self.first_thought) * 1000, 1)

    def measured(self) -> dict[str, Any]:
        """The numbers of this answer; an answer that was cut short has those of its beginning."""
        if self.usage is not None:
            prompt = self.usage.prompt_tokens
            cached = self.usage.cached_tokens if self.usage.tells_cached else None
            completion = self.usage.completion_tokens
        elif self.progress is not None:
            prompt, cached = self.progress.total, self.progress.cached
            completion = self.tokens
        else:
            return {}
        # What was begun in an earlier request is answer here, though it was sent as prompt.
        prompt, completion = max(1, prompt - self.sent_again), completion + self.carried
        cached = None if cached is None else min(cached, prompt)
        return {
            "prompt_tokens": prompt,
            "cached_tokens": cached,
            "completion_tokens": completion,
            "ttft_ms": self._ttft_ms(),
            "tokens_per_second": self._tokens_per_second(completion),
        }

    @property
    def tokens_read(self) -> int:
        """What of the prompt did not come from the server's cache; 0 where it does not say."""
        told = self.usage or self.progress
        if told is None or (isinstance(told, Usage) and not told.tells_cached):
            return 0
        size = told.prompt_tokens if isinstance(told, Usage) else told.total
        return size - (told.cached_tokens if isinstance(told, Usage) else told.cached)

    def _ttft_ms(self) -> float | None:
        return None if self.first_token is None else round((self.first_token - self.sent) * 1000, 1)

    def _tokens_per_second(self, completion: int) -> float | None:
        if self.usage is not None and self.usage.tokens_per_second:
            return round(self.usage.tokens_per_second, 2)
        if self.first_token is None or completion < 2 or self.last_token <= self.first_token:
            return None
        if self.has_called:  # tools, and perhaps a person, took their time in between
            return None
        return round((completion - 1) / (self.last_token - self.first_token), 2)
