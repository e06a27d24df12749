"""What is kept of the beginning of a conversation, over HTTP: pins and summaries."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from apps.chat.answering import summaries
from apps.chat.conversations import context_meter, cuts, services
from apps.chat.models import Conversation, Message, Summary, SummaryState
from apps.core.api import ApiError, NotFound, get_owned, owner

router = Router()


class PinOut(Schema):
    id: int
    pinned: bool


class SummaryOut(Schema):
    state: str
    text: str
    """Of one that failed: why."""
    created: datetime


class CutOut(Schema):
    before: int
    upto: int
    messages: int
    pinned: int
    unsent_pins: int
    summary: SummaryOut | None


@router.post("/messages/{pk}/pin", response=PinOut)
def pin_message(request: HttpRequest, pk: int) -> Any:
    """Always keep this message in context."""
    return _pin(request, pk, pinned=True)


@router.delete("/messages/{pk}/pin", response=PinOut)
def unpin_message(request: HttpRequest, pk: int) -> Any:
    return _pin(request, pk, pinned=False)


@router.get("/conversations/{int:pk}/summary", response=CutOut)
def get_summary(request: HttpRequest, pk: int) -> Any:
    """Where the prompt of the newest answer began, and the summary of what came before.

    404 while all of the conversation is sent.
    """
    return _cut_out(_cut(request, pk))


@router.post("/conversations/{int:pk}/summary", response={202: CutOut})
def summarise(request: HttpRequest, pk: int) -> Any:
    """Has the model summarise what was cut, on a slot that nobody needs. GET says when it is there.

    What is there already is written anew.
    """
    cut = _cut(request, pk)
    if cut.summary is not None and cut.summary.state == SummaryState.RUNNING:
        raise ApiError(409, "still_summarising", "A summary is already being generated.")
    summaries.begin(Message.objects.get(pk=cut.upto))
    return Status(202, _cut_out(_cut(request, pk)))


@router.delete("/conversations/{int:pk}/summary", response={204: None})
def forget_summary(request: HttpRequest, pk: int) -> Any:
    """Delete the summary."""
    summary = _cut(request, pk).summary
    if summary is None:
        raise NotFound("summary")
    summary.delete()
    return Status(204, None)


def _pin(request: HttpRequest, pk: int, *, pinned: bool) -> dict[str, Any]:
    changed = Message.objects.owned_by(owner(request)).filter(pk=pk).update(pinned=pinned)
    if not changed:
        raise NotFound("message")
    return {"id": pk, "pinned": pinned}


def _cut(request: HttpRequest, pk: int) -> cuts.Cut:
    """Settled: what it says of its summary is true."""
    found = get_owned(Conversation, request, pk)
    branch = services.Branch.active(found)
    cut = cuts.cut_of(branch, context_meter.turns_of(branch))
    if cut is None:
        raise NotFound("cut")
    if cut.summary is not None:
        summaries.settle(cut.summary)
    return cut


def _cut_out(cut: cuts.Cut) -> dict[str, Any]:
    return {
        "before": cut.before,
        "upto": cut.upto,
        "messages": cut.messages,
        "pinned": cut.pinned,
        "unsent_pins": cut.unsent_pins,
        "summary": _summary(cut.summary),
    }


def _summary(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {"state": summary.state, "text": summary.text, "created": summary.created}
