"""Work of the pump on a row: its requests in order, and its outcome."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from apps.batch.handlers import JobContext, RowInput, RowOrigin, RowOutcome, Verdict
from apps.core.schemas.json_types import JsonObject
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.prompts.prompt_size import row_tokens_bound
from apps.generation.recipe.recipe import ColumnRequest, Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import DuplicateFilter, filter_for_job, stored_tables
from apps.generation.rows.row_steps import Reply, Row, RowRequest, Steps, row_steps
from apps.generation.rows.row_texts import REPEATED, join_texts
from apps.generation.rows.samplers import RowSeed
from apps.llm.client import ChatRequest, Client, Message
from apps.llm.events import Usage
from apps.llm.resume import ResumableCompletion
from apps.llm.thinking import Thinking, ThinkingSupport, describe_missing_answer
from apps.runtime.async_db import in_db


@dataclass
class JobState:
    """Data that the rows of a job share while one pump works on them."""

    spec: Spec
    tables: dict[str, Table] = field(default_factory=dict)
    duplicates: DuplicateFilter | None = None
    thinking: Thinking = field(default_factory=Thinking)
    _is_loaded: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def load(self, batch_id: int) -> None:
        """Read the seed rows and the texts that no row may repeat."""
        async with self._lock:
            if not self._is_loaded:
                self.tables = await in_db(stored_tables, self.spec)
                self.duplicates = await filter_for_job(batch_id, self.spec, self.tables)
                self._is_loaded = True


@dataclass(slots=True)
class GeneratedRow:
    """Result of a row, and the requests, replies and usage that led to it."""

    row: Row = field(default_factory=Row)
    requests: list[RowRequest] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))

    @property
    def questions(self) -> list[str]:
        return [request.question for request in self.requests]


def _next(steps: Steps, reply: Reply | None) -> RowRequest | Row:
    try:
        return next(steps) if reply is None else steps.send(reply)
    except StopIteration as end:
        return cast(Row, end.value)


async def _advance(steps: Steps, reply: Reply | None, in_thread: bool) -> RowRequest | Row:
    """Run the steps up to the next request."""
    return await asyncio.to_thread(_next, steps, reply) if in_thread else _next(steps, reply)


async def generate_row(
    recipe: Recipe,
    row_seed: RowSeed,
    client: Client,
    model: str,
    draft: ResumableCompletion | None = None,
    accepted: Sequence[str] = (),
    thinking: Thinking | None = None,
    in_thread: bool = False,
) -> GeneratedRow:
    """Generate one row with the model.

    Args:
        draft: the part that is generated already.
        accepted: first replies that a person accepted: they are not requested again.
        thinking: shared by all rows for one model.
        in_thread: build prompts and check answers in a thread, for a web process: they must not
            block its event loop.

    Raises:
        LLMError: the server did not answer in full.
    """
    steps = row_steps(recipe, row_seed)
    draft, thinking = draft or ResumableCompletion(), thinking or Thinking()
    generated = GeneratedRow()
    step = await _advance(steps, None, in_thread)
    while isinstance(step, RowRequest):
        done = len(generated.replies)
        generated.requests.append(step)
        if done < len(accepted):
            reply = Reply(accepted[done], "stop", is_accepted=True)
        else:
            reply, usage = await _send(step, client, model, draft, thinking)
            generated.usage += usage
        generated.replies.append(reply.text)
        step = await _advance(steps, reply, in_thread)
    generated.row = step
    return generated


async def _send(
    row_request: RowRequest,
    client: Client,
    model: str,
    draft: ResumableCompletion,
    thinking: Thinking,
) -> tuple[Reply, Usage]:
    """Send one request of a row, the same in a preview as in the job."""
    shared = row_request.shared
    request = _chat_request(shared, model, row_request.messages, row_request.seed)
    completion = await thinking.complete(
        partial(draft.complete, client), request, shared.thinking, shared.reasoning_effort
    )
    only_thought = describe_missing_answer(completion, request.max_tokens)
    return Reply(completion.text, completion.finish_reason, only_thought), completion.usage


def _chat_request(
    shared: ColumnRequest, model: str, messages: Sequence[Mapping[str, str]], seed: int
) -> ChatRequest:
    return ChatRequest(
        model=model,
        messages=[cast(Message, message) for message in messages],
        max_tokens=shared.max_tokens,
        params={**shared.params, "seed": seed},
        response_format=shared.response_format,
    )


def shared_request(spec: Spec, model: str, thinking: ThinkingSupport) -> ChatRequest | None:
    """Build a request that begins as the first of every row does, with its system message."""
    system = spec.recipe.system_message
    if not system or not spec.recipe.requests:
        return None
    shared = spec.recipe.requests[0]
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "."}]
    request = _chat_request(shared, model, messages, seed=0)
    return Thinking(thinking).prepare(request, shared.thinking, shared.reasoning_effort)


async def run_row(row: RowInput, context: JobContext[Spec]) -> RowOutcome:
    """Generate a row for the pump, see `apps.batch.handlers.Handler`.

    Raises:
        LLMError: the server did not answer in full.
    """
    state = context.cached(JobState)
    await state.load(context.batch_id)
    spec = state.spec
    origin = RowOrigin.read(row.input)
    row_seed = seed_of_row(row.index, origin, spec, state.tables)
    accepted = () if origin is None else origin.accepted
    state.thinking.support = context.thinking
    generated = await generate_row(
        spec.recipe, row_seed, context.client, context.model, row.draft, accepted, state.thinking
    )
    return outcome(spec.recipe, generated, duplicates=state.duplicates, index=row.index)


def seed_of_row(
    index: int, origin: RowOrigin | None, spec: Spec, tables: Mapping[str, Table]
) -> RowSeed:
    if origin is None:
        return RowSeed(index, spec.seed, None, tables)
    return RowSeed(index, spec.seed, origin.index, tables, origin.turn)


def outcome(
    recipe: Recipe,
    generated: GeneratedRow,
    *,
    duplicates: DuplicateFilter | None = None,
    index: int = 0,
) -> RowOutcome:
    """Build the outcome of a row. A rejected one keeps its texts and the reason."""
    row = generated.row
    code, reason, minhash = row.code, row.reason, b""
    if not code and duplicates is not None:
        check = duplicates.check(index, row.texts)
        code, reason, minhash = check.code, check.reason, check.minhash
    questions = [
        {REPEATED: request.question} if request.is_repeat else request.question
        for request in generated.requests
    ]
    return RowOutcome(
        Verdict.REJECTED if code else Verdict.ACCEPTED,
        output=row.output,
        raw=join_texts(recipe, generated.replies),
        code=code,
        reason=reason,
        usage=generated.usage,
        prompt=join_texts(recipe, questions),
        fingerprint=None if code else answer_check.fingerprint(list(row.texts)),
        minhash=minhash,
    )


def read_spec(data: JsonObject) -> Spec:
    return Spec.read(data)


def row_tokens(spec: Spec, thinking: ThinkingSupport) -> int:
    return row_tokens_bound(spec.recipe, thinking, spec.prompt_tokens)
