"""Answers over HTTP: following, stopping, regenerating, continuing and comparing them."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from ninja import Field, Router, Schema, Status

from apps.chat.answering import sse, typeset
from apps.chat.api.schemas import (
    MessageOut,
    RegeneratedOut,
    StartedOut,
    ToolCallOut,
    answer_started,
    call_out,
    events_url,
    message_out,
    started_out,
)
from apps.chat.conversations import branches, call_decisions, compare, ratings, services
from apps.chat.lookups import get_answer, get_preset, get_server
from apps.chat.models import RatingWord, ToolCall
from apps.core.api import NotFound, owner
from apps.llm.thinking import StoredThinking

router = Router()


class CompareIn(Schema):
    server: int | None = None
    model: str = Field("", max_length=300)
    preset: int | None = None


@router.get("/answers/{pk}", response=MessageOut)
def read_answer(request: HttpRequest, pk: int) -> Any:
    """Get an answer, with the text so far while it is being generated."""
    return message_out(get_answer(request, pk), live=True)


@router.get("/answers/{pk}/events")
def answer_events(
    request: HttpRequest, pk: int, after: str | None = None, html: bool = False
) -> HttpResponseBase:
    """Stream server-sent events: a snapshot, or what came after a position, then live events.

    The position is the `id` of an event, as `?after=` or as the header `Last-Event-ID`. With `html`
    the text comes rendered: `typeset` events in place of `token` and `reasoning`, from a snapshot
    on whatever the position.
    """
    position = sse.parse_position(request.headers.get("Last-Event-ID") or after)
    answer = get_answer(request, pk, with_turn=False)
    held = sse.reserve_stream(request)
    if html:
        return sse.response_of(typeset.body(answer, held))
    return sse.response(answer, held, position)


class RatingIn(Schema):
    rating: RatingWord | None
    note: str = Field("", max_length=ratings.MAX_NOTE)


@router.put("/answers/{pk}/rating", response=MessageOut)
def rate_answer(request: HttpRequest, pk: int, data: RatingIn) -> Any:
    """Rate an answer. null takes the rating back."""
    answer = get_answer(request, pk)
    ratings.rate(answer, data.rating, data.note)
    return message_out(answer, live=True)


@router.get("/ratings")
def read_ratings(request: HttpRequest) -> StreamingHttpResponse:
    """Download the rated answers with their prompts as JSONL, which Generate takes as seed rows."""
    return ratings.download(owner(request))


@router.post("/answers/{pk}/stop", response=MessageOut)
def stop_answer(request: HttpRequest, pk: int) -> Any:
    """Stop the answer on the model server. Its text is kept."""
    return message_out(services.stop(get_answer(request, pk)), live=True)


@router.post("/answers/{pk}/answer-now", response=MessageOut)
def answer_now(request: HttpRequest, pk: int) -> Any:
    """End the thinking of a running answer, so that the model answers now.

    llama.cpp ends the thought. Other servers are asked again with thinking off; the thought is
    kept. Nothing changes for an answer that is not thinking.
    """
    return message_out(services.answer_now(get_answer(request, pk)), live=True)


@router.post("/answers/{pk}/regenerate", response={202: RegeneratedOut})
def regenerate_answer(request: HttpRequest, pk: int, thinking: StoredThinking | None = None) -> Any:
    """Generate another answer. This one is kept. `thinking`: the setting of the new one alone."""
    sibling = services.regenerate(get_answer(request, pk), thinking=thinking)
    return Status(202, {"answer": answer_started(sibling), "events": events_url(sibling)})


@router.post("/answers/{pk}/continue", response={202: StartedOut})
def continue_answer(request: HttpRequest, pk: int) -> Any:
    """Generate another answer that begins with this one's text and continues it."""
    return Status(202, started_out(branches.continue_answer(get_answer(request, pk))))


@router.post("/answers/{pk}/compare", response={202: StartedOut})
def compare_answer(request: HttpRequest, pk: int, data: CompareIn) -> Any:
    """Generate another answer to the same question, from another model or with a preset."""
    preset = get_preset(request, data.preset)
    other = compare.compare(
        get_answer(request, pk), server=get_server(data.server), model=data.model, preset=preset
    )
    return Status(202, started_out(other))


@router.post("/answers/{pk}/calls/{call}/approve", response=ToolCallOut)
def approve_call(request: HttpRequest, pk: int, call: int, always: bool = False) -> Any:
    """Approve a waiting call. `always`: do not ask again for this tool in the conversation."""
    found = _get_call(request, pk, call)
    return call_out(call_decisions.decide(found, run=True, always=always))


@router.post("/answers/{pk}/calls/{call}/refuse", response=ToolCallOut)
def refuse_call(request: HttpRequest, pk: int, call: int) -> Any:
    """Deny a waiting call. The model is told and continues."""
    return call_out(call_decisions.decide(_get_call(request, pk, call), run=False))


@router.post("/answers/{pk}/calls/{call}/run-again", response=ToolCallOut)
def run_call_again(request: HttpRequest, pk: int, call: int) -> Any:
    """Run a call that was cut off. Another answer continues from it; its copy is returned."""
    return call_out(call_decisions.run_again(_get_call(request, pk, call)))


def _get_call(request: HttpRequest, answer: int, pk: int) -> ToolCall:
    mine = ToolCall.objects.owned_by(owner(request)).select_related("answer")
    call = mine.filter(pk=pk, answer=answer).first()
    if call is None:
        raise NotFound("call")
    return call
