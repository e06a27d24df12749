"""Answers over HTTP: following, stopping and asking for another; and the calls in them."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from ninja import Router, Schema, Status

from apps.chat.answering import runner, sse
from apps.chat.conversations import services
from apps.chat.models import Message, Role, ToolCall
from apps.chat.tools import calling, deciding
from apps.core.api import NotFound, get_owned, owner

router = Router()


class ToolCallOut(Schema):
    id: int
    answer: int
    """Another than was asked about, where the process of that one had died: it goes on there."""
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
    status: str
    error: ErrorOut | None
    finish_reason: str
    model: str
    usage: UsageOut | None
    tool_calls: list[ToolCallOut]
    kept_from: int | None
    created: datetime
    finished: datetime | None


class AnswerStarted(Schema):
    id: int
    status: str


class RegeneratedOut(Schema):
    answer: AnswerStarted
    events: str


@router.get("/answers/{pk}", response=MessageOut)
def get_answer(request: HttpRequest, pk: int) -> Any:
    """While it is being written: with the text so far."""
    return message_out(_answer(request, pk), live=True)


@router.get("/answers/{pk}/events")
def answer_events(request: HttpRequest, pk: int, after: str | None = None) -> HttpResponseBase:
    """Server-sent events: a snapshot or what came after a position, then as it is written.

    The position is the `id` of an event, as `?after=` or as the header `Last-Event-ID`.
    """
    position = sse.position_of(request.headers.get("Last-Event-ID") or after)
    return sse.response(_answer(request, pk), sse.place(request), position)


@router.post("/answers/{pk}/stop", response=MessageOut)
def stop_answer(request: HttpRequest, pk: int) -> Any:
    """Stop the answer on the model server. Its text is kept."""
    return message_out(services.stop(_answer(request, pk)), live=True)


@router.post("/answers/{pk}/calls/{call}/approve", response=ToolCallOut)
def approve_call(request: HttpRequest, pk: int, call: int, always: bool = False) -> Any:
    """Approve a waiting call. `always`: do not ask again for this tool in the conversation."""
    return _decided(request, pk, call, partial(deciding.decide, run=True, always=always))


@router.post("/answers/{pk}/calls/{call}/refuse", response=ToolCallOut)
def refuse_call(request: HttpRequest, pk: int, call: int) -> Any:
    """Deny a waiting call. The model is told and continues."""
    return _decided(request, pk, call, partial(deciding.decide, run=False))


@router.post("/answers/{pk}/calls/{call}/run-again", response=ToolCallOut)
def run_call_again(request: HttpRequest, pk: int, call: int) -> Any:
    """Runs a call that was cut off. Another answer goes on from it; the call there is returned."""
    return _decided(request, pk, call, deciding.run_again)


@router.post("/answers/{pk}/regenerate", response={202: RegeneratedOut})
def regenerate_answer(request: HttpRequest, pk: int) -> Any:
    """Generate another answer. This one is kept."""
    again = services.answer_again(_answer(request, pk))
    return Status(202, started(again))


def _answer(request: HttpRequest, pk: int) -> Message:
    """Settled: what it says of its status is true."""
    answer = get_owned(Message.objects.answers(), request, pk, name="answer")
    runner.settle([answer])
    return answer


def _decided(
    request: HttpRequest, pk: int, call: int, decide: Callable[[ToolCall], ToolCall]
) -> dict[str, Any]:
    mine = ToolCall.objects.owned_by(owner(request)).select_related("answer")
    found = mine.filter(pk=call, answer=pk).first()
    if found is None:
        raise NotFound("call")
    return calling.described(decide(found))


def started(answer: Message) -> dict[str, Any]:
    return {
        "answer": {"id": answer.pk, "status": answer.status},
        "events": f"/api/v1/answers/{answer.pk}/events",
    }


def message_out(message: Message, *, live: bool = False) -> dict[str, Any]:
    status, content, reasoning = str(message.status), message.content, message.reasoning
    if live and not message.is_finished:
        so_far = runner.so_far(message)
        status, content, reasoning = so_far.status, so_far.text, so_far.reasoning
    error = None
    if message.error_code:
        error = {"code": message.error_code, "detail": message.error_detail}
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "content": content,
        "reasoning": reasoning,
        "status": status,
        "error": error,
        "finish_reason": message.finish_reason,
        "model": message.model,
        "usage": message.usage if message.role == Role.ASSISTANT else None,
        "tool_calls": _calls(message),
        "kept_from": message.cut_before_message,
        "created": message.created,
        "finished": message.finished,
    }


def _calls(message: Message) -> list[dict[str, Any]]:
    if message.role != Role.ASSISTANT:
        return []
    return [calling.described(call) for call in message.tool_calls.all()]
