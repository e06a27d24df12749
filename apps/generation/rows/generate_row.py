"""Work of the pump on a row: its requests in order, and its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from apps.batch.handlers import JobContext, RowInput, RowOutcome, Verdict
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.recipe.recipe import Recipe, response_format
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import DuplicateFilter, filter_for_job, stored_tables
from apps.generation.rows.row_steps import Ask, Reply, Row, Steps, write
from apps.generation.rows.row_texts import AGAIN, join_texts
from apps.generation.rows.samplers import RowSeed
from apps.llm.client import ChatRequest, Client, Message
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.llm.thinking import Thinking, ThinkingSupport, describe_missing_answer, plan_thinking
from apps.runtime.async_db import in_db

Tables = Mapping[str, Table]
NO_TABLES: Tables = {}


@dataclass
class Shared:
    """Data that the rows of a job share while one pump works on them."""

    spec: Spec
    tables: dict[str, Table] = field(default_factory=dict)
    guard: DuplicateFilter | None = None
    thinking: Thinking = field(default_factory=Thinking)
    _ready: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def prepare(self, batch_id: int) -> None:
        """Reads the seed rows and what is there already, once."""
        if self._ready:
            return
        async with self._lock:
            if not self._ready:
                self.tables = await in_db(stored_tables, self.spec)
                self.guard = await filter_for_job(batch_id, self.spec, self.tables)
                self._ready = True


@dataclass(frozen=True, slots=True)
class GeneratedRow:
    """Generated row: its result, its questions and replies, its usage."""

    row: Row
    asked: list[str]
    replies: list[str]
    usage: Usage
    again: list[bool] = field(default_factory=list)
    """Of each question whether it is about the answer to the one before."""


def request_for(chosen: Recipe, ask: Ask, model: str) -> ChatRequest:
    """A request of a row: the same in a preview as in the job."""
    return ChatRequest(
        model=model,
        messages=[cast(Message, message) for message in ask.messages],
        max_tokens=chosen.max_tokens_of(ask.column),
        params={**chosen.sampling_of(ask.column), "seed": ask.seed},
        response_format=response_format(ask.column),
    )


Advance = Callable[[Steps, Reply | None], Awaitable[Ask | Row]]


def _step(steps: Steps, reply: Reply | None) -> Ask | Row:
    try:
        return next(steps) if reply is None else steps.send(reply)
    except StopIteration as end:
        row: Row = end.value
        return row


async def here(steps: Steps, reply: Reply | None) -> Ask | Row:
    return _step(steps, reply)


async def in_thread(steps: Steps, reply: Reply | None) -> Ask | Row:
    return await asyncio.to_thread(_step, steps, reply)


async def generate_row(
    recipe: Recipe,
    row_seed: RowSeed,
    client: Client,
    model: str,
    draft: ResumableCompletion | None = None,
    passed: Sequence[str] = (),
    thinking: Thinking | None = None,
    advance: Advance = here,
) -> GeneratedRow:
    """Asks the model for one row.

    Args:
        draft: the part that is generated already.
        passed: the first replies, which a person lets pass: they are not asked for again.
        thinking: what is known of the model's, of all rows that it is asked for.
        advance: how prompts are made and answers looked at, where that must not keep the event loop
            of a web process; by default here and now.

    Raises:
        LLMError: the server did not answer in full.
    """
    steps = write(recipe, row_seed)
    draft, thinking = draft or ResumableCompletion(), thinking or Thinking()
    complete = partial(draft.complete, client)
    asked: list[str] = []
    replies: list[str] = []
    again: list[bool] = []
    usage = Usage(0, 0, 0)
    ask = await advance(steps, None)
    while isinstance(ask, Ask):
        asked.append(ask.messages[-1]["content"])
        again.append(ask.again)
        if len(replies) < len(passed):
            replies.append(passed[len(replies)])
            ask = await advance(steps, Reply(replies[-1], "stop", passed=True))
            continue
        request = request_for(recipe, ask, model)
        given = recipe.params_of(ask.column)
        completion = await thinking.complete(
            complete, request, given.get("thinking"), given.get("reasoning_effort", "")
        )
        replies.append(completion.text)
        usage += completion.usage
        nothing = describe_missing_answer(completion, request.max_tokens)
        reply = Reply(completion.text, completion.finish_reason, nothing)
        ask = await advance(steps, reply)
    return GeneratedRow(ask, asked, replies, usage, again)


async def run_row(row: RowInput, context: JobContext[Spec]) -> RowOutcome:
    """A row, by the pump's rules: `apps.batch.handlers.Handler`.

    Raises:
        LLMError: the server did not answer in full.
    """
    shared = context.cached(Shared)
    await shared.prepare(context.batch_id)
    spec = shared.spec
    row_seed = seed_of_row(row.index, row.input, spec, shared.tables)
    passed = row.input.get("passed", ()) if isinstance(row.input, dict) else ()
    shared.thinking.support = context.thinking
    generated = await generate_row(
        spec.recipe, row_seed, context.client, context.model, row.draft, passed, shared.thinking
    )
    return outcome(spec.recipe, generated, guard=shared.guard, index=row.index)


def seed_of_row(index: int, given: Any, spec: Spec, tables: Mapping[str, Table]) -> RowSeed:
    """A row as it is drawn, from its index and input."""
    if not isinstance(given, dict):
        return RowSeed(index, spec.seed, None, tables)
    return RowSeed(index, spec.seed, given["for"], tables, given.get("turn", 0))


def outcome(
    recipe: Recipe, generated: GeneratedRow, *, guard: DuplicateFilter | None = None, index: int = 0
) -> RowOutcome:
    """Build the outcome of a row. A rejected one keeps its texts and the reason."""
    row = generated.row
    marked = [
        {AGAIN: question} if is_again else question
        for question, is_again in zip(generated.asked, generated.again, strict=True)
    ]
    code, reason, minhash = row.code, row.reason, b""
    if not code and guard is not None:
        judged = guard.judge(index, row.texts)
        code, reason, minhash = judged.code, judged.reason, judged.minhash
    return RowOutcome(
        Verdict.REJECTED if code else Verdict.ACCEPTED,
        output=row.output,
        raw=join_texts(recipe, generated.replies),
        code=code,
        reason=reason,
        usage=generated.usage,
        prompt=join_texts(recipe, marked),
        fingerprint=None if code else answer_check.fingerprint(list(row.texts)),
        minhash=minhash,
    )


def read_spec(data: dict[str, Any]) -> Spec:
    return Spec.read(data)


def row_tokens(spec: Spec, thinking: ThinkingSupport) -> int:
    """Return the max tokens of a row's requests, answers included."""
    return tokens_of(spec.recipe, thinking, spec.prompt_tokens)


def tokens_of(
    recipe: Recipe,
    thinking: ThinkingSupport,
    prompt: int | None = None,
    tables: Tables = NO_TABLES,
) -> int:
    """
    Args:
        prompt: tokens of the prompts, where they were counted before.
        tables: else the seed rows.
    """
    thoughts = 0
    for column in recipe.written:
        given = recipe.params_of(column)
        effort = given.get("reasoning_effort", "")
        thoughts += plan_thinking(thinking, given.get("thinking"), effort).extra_tokens
    prompt_size = prompt_tokens(recipe, tables) if prompt is None else prompt
    # An answer that is asked for again is rare and not counted: it would halve the width of all.
    return prompt_size + recipe.max_tokens + thoughts
