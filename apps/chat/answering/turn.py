"""How an answer is written: ask the model, pass on what it says, run what it calls, ask again."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

from apps.chat.answering import prefill
from apps.chat.answering.event_log import AnswerLog
from apps.chat.answering.outcome import INTERRUPTED, INTERRUPTED_DETAIL, Outcome
from apps.chat.models import Message, Status
from apps.chat.prompt import build, context
from apps.chat.tools import calling, history
from apps.core.text.storable import to_storable
from apps.llm.errors import LLMError, PromptTooLong
from apps.llm.events import Done, Event, Progress, Reasoning, Token, Usage
from apps.llm.events import ToolCall as CallPiece
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers import services as llm
from apps.servers.models import Server
from apps.servers.services import RetryPolicy, hold_slot

# Slots and context of a server seldom change; asking costs the first token some milliseconds.
FACTS_AGE = timedelta(minutes=1)
TOO_MANY_ROUNDS = "tool_rounds"  # the finish_reason where it went on calling


async def write(answer_id: int, ask: build.Ask | None, log: AnswerLog, outcome: Outcome) -> None:
    """Asks the model and passes on what it says, and what it calls, until it calls no more.

    Raises:
        LLMError: anything short of a complete answer.
        NoServer: there is no server to ask.
    """
    if ask is None:
        ask = await in_db(_find, answer_id)
    await prefill.join(ask.conversation, ask.turns[-1].content if ask.turns else "")
    server = await llm.refresh_server(ask.server, max_age=FACTS_AGE)
    text, reasoning = ask.said
    if reasoning:
        log.think(reasoning)
    if text:
        log.token(text)
    for call in ask.called:
        log.call("tool_call", calling.described(call))
    done = max((call.round for call in ask.called), default=0)
    if any(call.is_unsettled for call in ask.called):
        ask = await _work_on(ask, server, log, outcome)
    elif ask.called and len(text) == ask.called[-1].text_to:  # it was stopped at its calls
        _part_from_calls(log)
    ask = replace(ask, may_call=done < ask.offer.rounds or not ask.called)
    for number in itertools.count(done + 1):
        await _say(ask, server, log, outcome)
        if not outcome.gathered:
            return
        if not ask.may_call:
            outcome.ended(Status.COMPLETE, TOO_MANY_ROUNDS)
            return
        ask = await _call(answer_id, ask, number, log, outcome)
        ask = replace(ask, may_call=number < ask.offer.rounds)


async def _work_on(ask: build.Ask, server: Server, log: AnswerLog, outcome: Outcome) -> build.Ask:
    """Runs the calls that a process left behind when it died, as far as a person lets them run."""
    outcome.ask, outcome.has_called = ask, True
    newest = [call for call in ask.called if call.round == ask.called[-1].round]
    await calling.work_on(
        newest,
        person=ask.person,
        offer=ask.offer,
        log=log,
        context_size=server.context_of(llm.choose_target(server, ask.model).model),
    )
    *_, part, _ = history.parts(*ask.said, ask.called)
    turns = history.of_round(part)
    _part_from_calls(log)
    return replace(ask, turns=[*ask.turns[: -len(turns)], *turns])


def _part_from_calls(log: AnswerLog) -> None:
    """What follows calls stands apart from what was said before them."""
    if log.text:
        log.token(history.BETWEEN)
    if log.reasoning:
        log.think(history.BETWEEN)


async def _say(ask: build.Ask, server: Server, log: AnswerLog, outcome: Outcome) -> None:
    """One request."""
    try:
        await _when_loaded(ask, _begun(build.prepare(ask, server), outcome), log, outcome)
    except PromptTooLong as error:
        if error.context is None:
            raise
        # Our estimate was too low. Nothing has been written yet: once more, with a deep cut.
        again = build.prepare(ask, server, limit=error.context)
        await _stream(ask, _begun(again, outcome), log, outcome)


def _begun(prepared: build.Prepared, outcome: Outcome) -> build.Prepared:
    outcome.begin(prepared.request.max_tokens)
    return prepared


async def _when_loaded(
    ask: build.Ask, prepared: build.Prepared, log: AnswerLog, outcome: Outcome
) -> None:
    """Asks again where that helps: whoever asked sees why it takes longer."""
    retry = RetryPolicy(prepared.target.server)
    while True:
        last_token, said = outcome.last_token, len(log.text)
        try:
            return await _stream(ask, prepared, log, outcome)
        except LLMError as error:
            has_begun = outcome.last_token != last_token
            pause = retry.next_pause(error, has_begun=has_begun)
            if pause is None or outcome.gathered:
                raise
            if text := log.text[said:]:
                if not prepared.target.server.continues_messages:
                    raise
                prepared = replace(
                    prepared,
                    request=prepared.request.continued_from(text, outcome.tokens),
                    prompt_tokens=prepared.prompt_tokens + outcome.tokens,
                )
                outcome.carry()
            if pause.reason:
                log.add("queued", reason=pause.reason)
            elif pause.seconds:
                log.add("loading")
            await asyncio.sleep(pause.seconds)


async def _call(
    answer_id: int, ask: build.Ask, number: int, log: AnswerLog, outcome: Outcome
) -> build.Ask:
    """Runs what the model called. Returns what to ask next: the same, calls and results after it.

    No slot is held meanwhile, however long a person takes to look at a call.
    """
    outcome.ended(Status.INTERRUPTED, code=INTERRUPTED, detail=INTERRUPTED_DETAIL)
    outcome.has_called = True
    assert outcome.server is not None
    calls = await calling.work(
        outcome.gathered.take(number),
        answer=answer_id,
        person=ask.person,
        round_number=number,
        offer=ask.offer,
        log=log,
        context_size=outcome.server.context_of(outcome.model),
        used=_used(outcome),
    )
    called = (*ask.called, *calls)
    *_, part, _ = history.parts(to_storable(log.text), to_storable(log.reasoning), called)
    turns = history.of_round(part)
    _part_from_calls(log)
    counted = ask.counted
    if outcome.usage is not None and outcome.usage.prompt_tokens:
        tokens = outcome.usage.prompt_tokens + outcome.usage.completion_tokens
        front = outcome.head.get("front", 0)
        left_out = frozenset(outcome.head.get("left_out", ()))
        counted = context.Counted(tokens, turns[0].id, outcome.cut_before_message, front, left_out)
    return replace(ask, turns=[*ask.turns, *turns], called=called, counted=counted, prefix=("", ""))


def _used(outcome: Outcome) -> int:
    """Tokens of prompt and answer so far, 0 where the server does not count."""
    usage = outcome.usage
    return usage.prompt_tokens + usage.completion_tokens if usage else 0


async def _stream(
    ask: build.Ask, prepared: build.Prepared, log: AnswerLog, outcome: Outcome
) -> None:
    target, server = prepared.target, prepared.target.server
    outcome.model, outcome.cut_before_message = target.model, prepared.cut_before_message
    outcome.head, outcome.ask, outcome.server = prepared.head, ask, server
    async with hold_slot(
        server,
        lane=Lane.INTERACTIVE,
        model=target.model,
        tokens=prepared.tokens,
        label="Chat",
        person=ask.person,
        on_wait=lambda: log.add("queued"),
    ) as held:
        if outcome.first_token is None:
            outcome.sent = time.perf_counter()
        async with (
            _told_of_load(target, log),
            aclosing(target.client.stream_chat(prepared.request)) as answer,
        ):
            async for event in answer:
                _pass_on(event, log, outcome)
        if outcome.usage is not None:
            held.record_usage(outcome.usage)


@asynccontextmanager
async def _told_of_load(target: llm.Target, log: AnswerLog) -> AsyncIterator[None]:
    """Meanwhile it is said that the model is being loaded, and how far, if it is not in memory."""
    if target.is_loaded:
        yield
        return
    log.add("loading")
    telling = asyncio.create_task(_tell_of_load(target, log))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
        await llm.mark_stale(target.server)


async def _tell_of_load(target: llm.Target, log: AnswerLog) -> None:
    async for share in llm.loading_progress(target.server, target.model):
        log.add("loading", share=share)


def _pass_on(event: Event, log: AnswerLog, outcome: Outcome) -> None:
    match event:
        case Token():
            outcome.count_token()
            log.token(event.text)
        case Reasoning():
            outcome.count_token(is_thought=True)
            log.think(event.text)
        case CallPiece():
            outcome.count_token()
            outcome.gathered.add(event.delta)
        case Progress():
            outcome.count_progress(event)
            log.add("progress", total=event.total, cached=event.cached, processed=event.processed)
        case Usage():
            outcome.usage = event
        case Done():
            outcome.ended(Status.COMPLETE, event.finish_reason)


def _find(answer_id: int) -> build.Ask:
    answers = Message.objects.select_related("conversation__server", "conversation__system_prompt")
    return build.for_answer(answers.get(pk=answer_id))
