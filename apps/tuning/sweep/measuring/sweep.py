"""The measurements of one sweep, one after the other, each repeated if somebody came."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from django.utils import timezone

from apps.llm.client import Message
from apps.llm.errors import PoolExhausted, PromptTooLong
from apps.llm.permits import Permit
from apps.servers.services import Target
from apps.tuning.errors import SweepError
from apps.tuning.sweep.best_width import BestWidthSearch
from apps.tuning.sweep.measuring.chat_turns import (
    QUESTION_CHARACTERS,
    SHARE_OF_SLOT,
    chat_tokens,
    measure_chat,
)
from apps.tuning.sweep.measuring.probe import JobProbe
from apps.tuning.sweep.measuring.progress import PAUSED, OnProgress, Progress
from apps.tuning.sweep.measuring.rounds import measure_load
from apps.tuning.sweep.measuring.slots import IdleSlots, InUse
from apps.tuning.sweep.measuring.stream import ask, build_request
from apps.tuning.sweep.measuring.ubatches import measure_ubatch, plan_ubatches
from apps.tuning.sweep.plan import OVERHEAD_TOKENS, Load, Room, plan_loads, prompt_lengths
from apps.tuning.sweep.prompts import SAMPLE_CHARACTERS, USUAL_CHARACTERS, uncached_prompt
from apps.tuning.sweep.results import SweepResults

# An answer takes about so long alone.
ANSWER_SECONDS = 1.0
LEAST_ANSWER, MOST_ANSWER = 16, 128
SAMPLE_TOKENS = 8

T = TypeVar("T")


class Sweep:
    """One sweep of one model."""

    def __init__(self, target: Target, on_progress: OnProgress, owner: int | None) -> None:
        server = target.server
        self.target = target
        self.slots = IdleSlots(target, owner)
        self.room = Room(
            server.slots_of(target.model),
            server.context_of(target.model),
            server.pool(target.model),
        )
        self.results = SweepResults(
            model=target.model,
            slots=self.room.slots,
            context=self.room.context,
            build=server.facts.build,
            started=timezone.now().isoformat(timespec="seconds"),
        )
        self.done = 0
        self._on_progress = on_progress
        self._answer_tokens = LEAST_ANSWER
        self._characters = USUAL_CHARACTERS

    async def run(self) -> None:
        await self.take_sample()
        loads = plan_loads(self.room, self._answer_tokens)
        if not loads:
            raise SweepError("A slot has too little context to measure anything.")
        ubatches = await plan_ubatches(self.target.server)
        self.results.planned = len(loads) + 2 + len(ubatches)
        await self.find_width()
        shortest = loads[0].prompt_tokens
        for load in [load for load in loads if _is_first_kind(load, shortest)]:
            await self._measure_load(load)
        await self._measure_chat()
        for load in [load for load in loads if not _is_first_kind(load, shortest)]:
            await self._measure_load(load)
        for ubatch in ubatches:
            await self._measure_ubatch(ubatch)

    async def find_width(self) -> None:
        """Search the best number of sequences for jobs."""
        probe, tokens = self.job_probe()
        most = self.room.slots
        if self.room.pool is not None:
            most = max(1, min(most, self.room.pool // tokens))
        search, began = BestWidthSearch(most), time.monotonic()
        while (width := search.next_width()) is not None:
            doing = f"Best number for jobs: {width} at a time"
            rate = await self._measured(doing, partial(probe.measure, width, tokens))
            search.learn(width, rate)
            self.results.probed = search.rates
            self.results.search_seconds = time.monotonic() - began
        self.results.best_width = search.best
        self.done += 1

    def job_probe(self) -> tuple[JobProbe, int]:
        """Return what measures requests as a job sends them, and the tokens of one at most."""
        shortest = prompt_lengths(self.room, self._answer_tokens)[0]
        probe = JobProbe(self.slots, self._length(shortest), self._answer_tokens)
        return probe, self._tokens(shortest)

    def fail(self, reason: str, error: Exception) -> None:
        """Keep what was measured, with the reason why it is not all."""
        if not self.results.points and not self.results.probed:
            raise SweepError(reason) from error
        self.results.notes.append(f"Stopped early. {reason}")

    async def take_sample(self) -> None:
        """Learn the length of tokens, and the speed, from short answers."""

        async def work(held: Permit) -> tuple[int | None, float]:
            message: Message = {"role": "user", "content": uncached_prompt(SAMPLE_CHARACTERS)}
            await ask(self.target, build_request(self.target, [message], 1))  # it may sleep
            answer = await ask(self.target, build_request(self.target, [message], SAMPLE_TOKENS))
            seconds = answer.timing.ended - answer.timing.arrivals[0]
            return answer.timing.prompt_tokens, seconds / max(1, len(answer.timing.arrivals) - 1)

        async def sample() -> tuple[int | None, float]:
            return (await self.slots.run([work], SAMPLE_CHARACTERS))[0]

        prompt, seconds = await self._measured("Speed of one sequence", sample)
        if prompt:
            self._characters = SAMPLE_CHARACTERS / prompt
        wanted = round(ANSWER_SECONDS / seconds) if seconds else MOST_ANSWER
        self._answer_tokens = min(MOST_ANSWER, max(LEAST_ANSWER, wanted))
        if self.room.context is not None:
            self._answer_tokens = min(self._answer_tokens, max(8, self.room.context // 8))
        self.results.answer_tokens = self._answer_tokens

    async def _measure_load(self, load: Load) -> None:
        try:
            point = await self._measured(
                load.description,
                lambda: measure_load(self.slots, load, self._characters, self._answer_tokens),
            )
        except (PromptTooLong, PoolExhausted) as error:
            self.results.notes.append(f"{load.description}: {error}")
        else:
            self.results.points.append(point)
        self.done += 1

    async def _measure_chat(self) -> None:
        context = self.room.context or self.room.longest_prompt
        per_turn = chat_tokens(0, self._tokens_of(QUESTION_CHARACTERS), self._answer_tokens)
        system = min(1024, int(context * SHARE_OF_SLOT), context - per_turn - OVERHEAD_TOKENS)
        if system >= OVERHEAD_TOKENS:
            self.results.chat = await self._measured(
                "Chat of 4 turns, with and without the prompt cache",
                lambda: measure_chat(
                    self.slots, self._length(system), self._answer_tokens, system + per_turn
                ),
            )
        else:
            self.results.notes.append("A slot has too little context for a chat of 4 turns.")
        self.done += 1

    async def _measure_ubatch(self, ubatch: int) -> None:
        works = [partial(measure_ubatch, self.target, ubatch, self._characters)]
        doing = f"Prompt rate with a micro-batch of {ubatch:,} tokens (-ub)"
        [rate] = await self._measured(doing, partial(self.slots.run, works, 1))
        if rate is not None:
            self.results.ubatches[ubatch] = rate
        self.done += 1

    async def _measured(self, doing: str, measure: Callable[[], Awaitable[T]]) -> T:
        """Measure while nobody uses the server; from the beginning if somebody came meanwhile."""
        while True:
            waited = time.monotonic()
            await self.slots.wait_until_idle(self._report_pause)
            self.results.paused_seconds += time.monotonic() - waited
            await self._report(doing)
            began = time.monotonic()
            try:
                return await measure()
            except InUse:
                self.results.paused_seconds += time.monotonic() - began

    async def _report_pause(self) -> None:
        await self._report(PAUSED)

    async def _report(self, doing: str) -> None:
        await self._on_progress(Progress(self.done, self.results.planned, doing, self.results))

    def _length(self, tokens: int) -> int:
        return round(tokens * self._characters)

    def _tokens_of(self, characters: int) -> int:
        return round(characters / self._characters)

    def _tokens(self, prompt_tokens: int) -> int:
        return prompt_tokens + OVERHEAD_TOKENS + self._answer_tokens


def _is_first_kind(load: Load, shortest: int) -> bool:
    return load.prompt_tokens == shortest and not load.is_cached
