"""Messages and answers as the API shows them."""

from dataclasses import asdict
from datetime import datetime

from ninja import Field, Schema

from apps.chat.models import (
    MAX_ROUNDS,
    ROUNDS,
    Message,
    RatingWord,
    Role,
    ToolCall,
    ToolSettings,
)
from apps.chat.streaming.stream import partial_snapshot
from apps.chat.tools import settings as tool_settings
from apps.core.tools import Approval


class ToolsIn(Schema):
    """The tools that a conversation's model may call, and their approvals."""

    use: dict[str, Approval] = {}
    rounds: int = Field(ROUNDS, ge=1, le=MAX_ROUNDS)
    parallel: bool = True

    def checked(self, person: int) -> ToolSettings:
        return tool_settings.check(self.use, self.rounds, self.parallel, person)


class ToolCallOut(Schema):
    id: int
    answer: int
    """Another answer than requested if the process of that one died: it continues there."""
    call_id: str
    round: int
    name: str
    arguments: str
    at: int
    state: str
    result: str


class UsageOut(Schema):
    prompt_tokens: int
    cached_tokens: int | None
    completion_tokens: int | None
    ttft_ms: float | None
    tokens_per_second: float | None


class ErrorOut(Schema):
    code: str
    detail: str


class MessageOut(Schema):
    id: int
    parent: int | None
    role: str
    content: str
    reasoning: str
    reasoning_tokens: int | None
    status: str
    error: ErrorOut | None
    finish_reason: str
    model: str
    server: str
    """Name of the server that answered; empty: not known."""
    rating: RatingWord | None
    rating_note: str
    fallback_note: str
    """Which server answered in place of the conversation's; empty: its own."""
    usage: UsageOut | None
    tool_calls: list[ToolCallOut]
    kept_from: int | None
    created: datetime
    finished: datetime | None


class AnswerStarted(Schema):
    id: int
    status: str


class StartedOut(Schema):
    id: int
    status: str
    events: str


class TurnOut(Schema):
    question: MessageOut
    answer: AnswerStarted
    events: str


class RegeneratedOut(Schema):
    answer: AnswerStarted
    events: str


def message_out(message: Message, *, live: bool = False) -> MessageOut:
    """Return a message.

    Args:
        live: with the text so far of an unfinished answer.
    """
    status, content, reasoning = str(message.status), message.content, message.reasoning
    if live and not message.is_finished:
        snapshot = partial_snapshot(message.pk)
        status, content, reasoning = snapshot.status, snapshot.text, snapshot.reasoning
    is_answer = message.role == Role.ASSISTANT
    usage = message.usage if is_answer else None
    error = None
    if message.error_code:
        error = ErrorOut(code=message.error_code, detail=message.error_detail)
    return MessageOut(
        id=message.pk,
        parent=message.parent_id,
        role=message.role,
        content=content,
        reasoning=reasoning,
        reasoning_tokens=message.reasoning_tokens,
        status=status,
        error=error,
        finish_reason=message.finish_reason,
        model=message.model,
        server=message.server_name,
        rating=message.rating_word,
        rating_note=message.rating_note,
        fallback_note=message.fallback_note,
        usage=UsageOut(**asdict(usage)) if usage else None,
        tool_calls=[call_out(call) for call in message.tool_calls.all()] if is_answer else [],
        kept_from=message.cut_before_message,
        created=message.created,
        finished=message.finished,
    )


def call_out(call: ToolCall) -> ToolCallOut:
    return ToolCallOut(**asdict(call.as_event()))


def started_out(answer: Message) -> StartedOut:
    return StartedOut(id=answer.pk, status=answer.status, events=events_url(answer))


def answer_started(answer: Message) -> AnswerStarted:
    return AnswerStarted(id=answer.pk, status=answer.status)


def events_url(answer: Message) -> str:
    return f"/api/v1/answers/{answer.pk}/events"
