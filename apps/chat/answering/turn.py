"""One answer, from its prompt to its end: request, stream, run tool calls, request again."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from apps.chat.answering import prefill
from apps.chat.answering.outcome import Outcome, save
from apps.chat.answering.wait_for_start import wait_for_start
from apps.chat.knowledge.search import add_passages
from apps.chat.models import THOUGHT_TOO_LONG, Status, ToolCall
from apps.chat.prompt.branch import BETWEEN, UNSAVED, messages_of_round, split_at_calls
from apps.chat.prompt.build import PromptInput, for_answer
from apps.chat.prompt.messages import CountedPrompt
from apps.chat.prompt.prepare import PreparedRequest, prepare
from apps.chat.streaming import runner_registry
from apps.chat.streaming.event_log import AnswerLog
from apps.chat.tools.call_pieces import CallAssembler
from apps.chat.tools.call_runner import CallRunner
from apps.core.text.storable import to_storable
from apps.llm.errors import LLMError, PromptTooLong, Unreachable
from apps.llm.events import Done, Event, Progress, Reasoning, Started, Token, Usage
from apps.llm.events import ToolCall as CallPiece
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers import services as llm
from apps.servers.models import State
from apps.servers.services import RetryPolicy, hold_slot

# Slots and context of a server seldom change, and asking makes the first token wait. The samples of
# monitoring ask often enough that no question has to.
FACTS_AGE = timedelta(minutes=3)
TOO_MANY_ROUNDS = "tool_rounds"  # the finish_reason of an answer that kept calling tools

# llama.cpp ends a thought within its next tokens. A server that says so and thinks on has not.
GRACE_TOKENS = 32


class ThoughtNotEnded(Exception):
    """The server cannot end a thought: the request has to be sent again without thinking."""


class ServerAway(Exception):
    """The server did not answer and has a fallback, which the prompt names now."""


class ThoughtControl:
    """The thought of the request that an answer is waiting for."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._target: llm.Target | None = None
        self._completion_id = ""
        self._max_tokens: int | None = None
        """With more tokens than this, a thought has not ended as it was told to."""

    def start_request(self, target: llm.Target) -> None:
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


class Turn:
    """Owns the prompt, the event log and the outcome of one answer.

    With a prompt and no ID the request is sent while the answer is being saved. `attach` follows,
    or `cancel` if saving failed.
    """

    def __init__(
        self,
        answer_id: int = 0,
        prompt: PromptInput | None = None,
        *,
        on_sent: Callable[[], object] = lambda: None,
    ) -> None:
        """
        Args:
            on_sent: called when the request is on its way, or waits for a slot.
        """
        self.answer_id = answer_id
        self.log = AnswerLog(answer_id)
        self.outcome = Outcome()
        self.prompt = prompt
        """None until it was read."""
        self.work: asyncio.Task[None] | None = None
        """Runs `generate`."""
        self.is_stopped = False
        self.is_saved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the answer was saved, once that is known."""
        self._on_sent = on_sent
        self._question_id = 0
        self._calls = CallAssembler()
        self.thought = ThoughtControl(self.outcome)
        if answer_id:
            self.is_saved.set_result(True)

    def attach(self, answer_id: int, question_id: int) -> None:
        """Go on with an answer that is saved now."""
        self.answer_id, self._question_id = answer_id, question_id
        self.log.open(answer_id)
        self.is_saved.set_result(True)

    def stop(self) -> None:
        """Close the request because a person pressed Stop. The text is kept."""
        self.is_stopped = True
        if self.work is not None:
            self.work.cancel()

    def cancel(self) -> None:
        """Close the request of an answer that was not saved yet, and will not be."""
        self.is_saved.set_result(False)
        if self.work is not None:
            self.work.cancel()

    async def generate(self) -> None:
        """Request answers of the model and run its tool calls until it calls no more.

        Raises:
            LLMError: anything short of a complete answer.
            NoServer: no server is set, and there is no default.
        """
        prompt = self.prompt
        if prompt is None:
            await add_passages(self.answer_id)
            prompt = await in_db(for_answer, self.answer_id)
        await prefill.join(prompt.conversation, prompt.messages[-1].content)
        server = await llm.refresh_server(prompt.server, max_age=FACTS_AGE)
        prompt = self.prompt = replace(prompt, server=server)
        if server.state == State.UNREACHABLE or server.facts.is_downloading:
            prompt = await self._fall_back(prompt) or prompt
        if prompt.server.state == State.LOADING:
            server = await wait_for_start(prompt.server, self.log)
            prompt = self.prompt = replace(prompt, server=server)
        done = max((call.round for call in prompt.previous_calls), default=0)
        await self._resume_answer(prompt)
        for number in itertools.count(done + 1):
            prompt = self._prompt_of_round(number - 1)
            try:
                await self._request(prompt)
            except ServerAway:
                prompt = self._prompt_of_round(number - 1)
                await self._request(prompt)
            if not self._calls or not await self.is_saved:
                return
            if not prompt.may_call:
                self.outcome.end(Status.COMPLETE, TOO_MANY_ROUNDS)
                return
            await self._run_calls(prompt, number)

    async def finish(self) -> None:
        """Save the answer, then write its end: whoever reads the end finds the answer saved."""
        if self.outcome.cut_before_message == UNSAVED:
            self.outcome.cut_before_message = self._question_id
        try:
            stopped = await in_db(save, self.answer_id, self.log, self.outcome, self.prompt)
        finally:
            # If saving failed, the text is still in the stream and is saved from there.
            runner_registry.unregister(self.answer_id)
        for call in stopped:
            self.log.add_call("tool_result", call.as_event())
        if usage := self.outcome.usage_fields():
            self.log.add("usage", **usage)
        outcome = self.outcome
        if outcome.error_code:
            await self.log.end("error", code=outcome.error_code, detail=outcome.error_detail)
        else:
            await self.log.end("done", finish_reason=outcome.finish_reason)

    def _prompt_of_round(self, done: int) -> PromptInput:
        assert self.prompt is not None
        may_call = done == 0 or done < self.prompt.offer.rounds
        self.prompt = replace(self.prompt, may_call=may_call)
        return self.prompt

    async def _resume_answer(self, prompt: PromptInput) -> None:
        """Write the text and calls of the answer that this one continues, and run open calls."""
        text, reasoning = prompt.continued_text
        if reasoning:
            self.log.add_reasoning(reasoning)
        if text:
            self.log.add_token(text)
        for call in prompt.previous_calls:
            self.log.add_call("tool_call", call.as_event())
        if any(call.needs_result for call in prompt.previous_calls):
            await self._resume_tool_calls(prompt)
        elif prompt.previous_calls and len(text) == prompt.previous_calls[-1].text_to:
            self._separate_rounds()  # it was stopped at its calls

    async def _resume_tool_calls(self, prompt: PromptInput) -> None:
        """Run the calls that a process left behind when it died, as far as they are approved."""
        self.outcome.has_called = True
        calls = prompt.previous_calls
        model = llm.choose_target(prompt.server, prompt.model).model
        await self._runner(prompt, model).resume([c for c in calls if c.round == calls[-1].round])
        *_, part, _ = split_at_calls(*prompt.continued_text, calls)
        messages = messages_of_round(part)
        self._separate_rounds()
        self.prompt = replace(prompt, messages=[*prompt.messages[: -len(messages)], *messages])

    async def _run_calls(self, prompt: PromptInput, number: int) -> None:
        """Run the calls of a round, and extend the prompt by them and their results.

        No slot is held meanwhile, however long a person takes to approve a call.
        """
        outcome = self.outcome
        outcome.reset_end()
        outcome.has_called = True
        usage = outcome.usage
        used = usage.prompt_tokens + usage.completion_tokens if usage else 0
        calls: list[ToolCall] = await self._runner(prompt, outcome.model).run(
            self._calls.take(number), round_number=number, used=used
        )
        previous = (*prompt.previous_calls, *calls)
        text, reasoning = to_storable(self.log.text), to_storable(self.log.reasoning)
        *_, part, _ = split_at_calls(text, reasoning, previous)
        messages = messages_of_round(part)
        self._separate_rounds()
        counted = prompt.counted
        if usage is not None and usage.prompt_tokens:
            prefix = outcome.prefix
            counted = CountedPrompt(
                used,
                messages[0].id,
                outcome.cut_before_message,
                prefix.front_bytes,
                prefix.left_out,
            )
        self.prompt = replace(
            prompt,
            messages=[*prompt.messages, *messages],
            previous_calls=previous,
            counted=counted,
            answer_start=("", ""),
        )

    def _runner(self, prompt: PromptInput, model: str) -> CallRunner:
        context_size = prompt.server.context_of(model)
        return CallRunner(self.answer_id, prompt.person, prompt.offer, self.log, context_size)

    def _separate_rounds(self) -> None:
        """Put a blank line between the text before calls and what follows them."""
        if self.log.text:
            self.log.add_token(BETWEEN)
        if self.log.reasoning:
            self.log.add_reasoning(BETWEEN)

    async def _fall_back(self, prompt: PromptInput) -> PromptInput | None:
        """Ask the fallback from now on. Return its prompt; None if there is none.

        Only where nothing has arrived: no answer is written by two models.
        """
        server, outcome = prompt.server, self.outcome
        if outcome.first_token is not None or outcome.fallback_note:
            return None
        target = await llm.find_fallback(llm.Use.CHAT, server)
        if target is None:
            return None
        outcome.fallback_note = (
            f"“{server}” does not answer. This answer came from “{target.server}”."
        )
        self.log.add("queued", reason=f"“{server}” does not answer. Asking “{target.server}”…")
        # Its model counts tokens in another way.
        self.prompt = replace(prompt, server=target.server, model=target.model, counted=None)
        return self.prompt

    async def _request(self, prompt: PromptInput) -> None:
        """Send the prompt, cut deeper once if the server finds it too long."""
        try:
            await self._send_until_answered(prompt, prepare(prompt, prompt.server))
        except PromptTooLong as error:
            if error.context is None:
                raise
            # The estimate was too low, and nothing has been written yet.
            prepared = prepare(prompt, prompt.server, limit=error.context)
            await self._send_until_answered(prompt, prepared)
        usage = self.outcome.usage
        if usage is not None and self.outcome.has_no_room:
            raise PromptTooLong(usage.prompt_tokens, prompt.server.context_of(self.outcome.model))

    async def _send_until_answered(self, prompt: PromptInput, prepared: PreparedRequest) -> None:
        """Send a request again while that helps, and report why it takes longer."""
        outcome, server = self.outcome, prepared.target.server
        outcome.start_round(prepared.max_tokens)
        retry = RetryPolicy(server)
        while True:
            last_token, written = outcome.last_token, len(self.log.text)
            try:
                return await self._stream(prompt, prepared)
            except ThoughtNotEnded:
                outcome.carry_over()
                prepared = prepared.without_thinking()
            except LLMError as error:
                if isinstance(error, Unreachable) and await self._fall_back(prompt):
                    await llm.mark_stale(server)
                    raise ServerAway from error
                pause = retry.next_pause(error, has_begun=outcome.last_token != last_token)
                if pause is None or self._calls:
                    raise
                if text := self.log.text[written:]:
                    if not server.continues_messages:
                        raise
                    prepared = prepared.resumed_after(text, outcome.tokens)
                    outcome.carry_over()
                if pause.reason:
                    self.log.add("queued", reason=pause.reason)
                elif pause.seconds:
                    self.log.add("loading")
                await asyncio.sleep(pause.seconds)

    async def _stream(self, prompt: PromptInput, prepared: PreparedRequest) -> None:
        """Stream one request on a slot, and pass its events on."""
        outcome, target = self.outcome, prepared.target
        outcome.start_request(prepared)
        self.thought.start_request(target)
        async with hold_slot(
            target.server,
            lane=Lane.INTERACTIVE,
            model=target.model,
            tokens=prepared.tokens,
            label="Chat",
            person=prompt.person,
            on_wait=self._report_wait,
        ) as held:
            held.is_prompt_cut = prepared.cut_before_message is not None
            is_first = outcome.first_token is None
            if is_first:
                outcome.sent_at = time.perf_counter()
                # After this step of the loop, which writes the request.
                asyncio.get_running_loop().call_soon(self._on_sent)
            restored = None
            if target.saves_slots:
                restored = await llm.restore_prompt(target, prepared.request)
            async with (
                self._report_loading(target),
                aclosing(target.client.stream_chat(prepared.request)) as events,
            ):
                async for event in events:
                    self._pass_on(event)
                    if is_first and held.first_token_ms is None:
                        held.first_token_ms = outcome.ttft_ms()
                    self.thought.check()
                    if prepared.answer_tokens and outcome.text_tokens >= prepared.answer_tokens:
                        # The rest of the request's tokens were for a thought.
                        outcome.end(Status.COMPLETE, "length")
                        break
            if outcome.usage is not None:
                held.record_usage(outcome.usage, is_only_thought=outcome.is_only_thought)
                if target.saves_slots:
                    source = llm.source_of(prompt.conversation)
                    await llm.record_prompt(
                        target, prepared.request, outcome.usage, restored, source
                    )

    def _report_wait(self) -> None:
        self.log.add("queued")
        self._on_sent()

    @asynccontextmanager
    async def _report_loading(self, target: llm.Target) -> AsyncIterator[None]:
        """Write the progress of loading the model, if it is not in memory."""
        if not target.must_be_loaded:
            yield
            return
        self.log.add("loading")
        report = asyncio.create_task(self._report_load_progress(target))
        try:
            yield
        finally:
            report.cancel()
            await asyncio.wait([report])
            await llm.mark_stale(target.server)

    async def _report_load_progress(self, target: llm.Target) -> None:
        async for share in llm.loading_progress(target.server, target.model):
            self.log.add("loading", share=share)

    def _pass_on(self, event: Event) -> None:
        outcome, log = self.outcome, self.log
        match event:
            case Started():
                self.thought.record_id(event.completion_id)
            case Token():
                outcome.count_token()
                log.add_token(event.text)
            case Reasoning():
                outcome.count_token(is_reasoning=True)
                log.add_reasoning(event.text)
            case CallPiece():
                outcome.count_token()
                self._calls.add(event.delta)
            case Progress():
                outcome.count_progress(event)
                counts = {"total": event.total, "cached": event.cached}
                log.add_soon("progress", **counts, processed=event.processed)
            case Usage():
                outcome.usage = event
            case Done():
                only_thought = event.finish_reason == "length" and outcome.is_thinking
                reason = THOUGHT_TOO_LONG if only_thought else event.finish_reason
                outcome.end(Status.COMPLETE, reason)
