"""Slots and answers without a server, for tests of what is asked and in which order."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from apps.llm.client import ChatRequest
from apps.llm.events import Usage
from apps.llm.permits import Permit
from apps.servers.models import Kind, Server
from apps.servers.services import Target
from apps.tuning.sweep.figures import Timing
from apps.tuning.sweep.measuring.slots import InUse
from apps.tuning.sweep.measuring.stream import Answer


def server(**fields: Any) -> Server:
    facts = {"slots": 4, "context": 8192, "build": "b1", "models": [{"id": "m"}]}
    return Server(
        name="Fake",
        base_url="http://127.0.0.1:9/v1",
        kind=Kind.LLAMA_SERVER,
        **({"stored_facts": facts} | fields),
    )


class FakeSlots:
    """Runs works one after the other. `in_use`: so many runs are interrupted by a person."""

    def __init__(self, target: Target | None = None, in_use: int = 0) -> None:
        self.target = target or Target(server(), "m")
        self.in_use = in_use
        self.widths: list[int] = []
        self.tokens: list[int] = []
        self.permits: list[Permit] = []

    async def run(
        self,
        works: Sequence[Callable[[Permit], Awaitable[Any]]],
        tokens: int,
        until: Callable[[], Awaitable[None]] | None = None,
    ) -> list[Any]:
        if self.in_use:
            self.in_use -= 1
            raise InUse
        self.widths.append(len(works))
        self.tokens.append(tokens)
        found = []
        for work in works:
            self.permits.append(Permit("p", 1, "{}"))
            found.append(await work(self.permits[-1]))
        return found

    async def wait_until_idle(self, on_wait: Callable[[], Awaitable[None]]) -> None:
        if self.in_use:
            await on_wait()


class FakeAnswers:
    """Takes the place of `ask`: keeps the requests; every answer is alike."""

    def __init__(self, *, prompt_tokens: int = 100, first_token: float = 0.5) -> None:
        self.requests: list[ChatRequest] = []
        self._prompt_tokens, self._first_token = prompt_tokens, first_token

    async def __call__(
        self, target: Target, request: ChatRequest, arrivals: list[float] | None = None
    ) -> Answer:
        self.requests.append(request)
        tokens = request.max_tokens or 1
        times = [self._first_token + 0.1 * at for at in range(tokens)]
        usage = Usage(self._prompt_tokens, 0, tokens)
        timing = Timing(0.0, times, tokens, self._prompt_tokens, 0)
        return Answer(timing, usage, f"answer {len(self.requests)}")

    @property
    def prompts(self) -> list[str]:
        """The first message of each request."""
        return [request.messages[0]["content"] for request in self.requests]
