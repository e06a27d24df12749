"""Pinned messages and summaries of the cut part of a conversation, over HTTP."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from apps.chat.answering import summaries
from apps.chat.conversations.branch_view import Branch
from apps.chat.conversations.cuts import Cut, find_cut
from apps.chat.lookups import get_conversation
from apps.chat.models import Message, SummaryState
from apps.core.api import ApiError, NotFound, owner

router = Router()


class PinOut(Schema):
    id: int
    pinned: bool


class SummaryOut(Schema):
    state: str
    text: str
    """The summary, or the error if it failed."""
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
    """Get the cut in the prompt of the newest answer, and the summary of the messages before it.

    404 while the whole conversation is sent.
    """
    return _cut(request, pk)


@router.post("/conversations/{int:pk}/summary", response={202: CutOut})
def summarise(request: HttpRequest, pk: int) -> Any:
    """Summarise the cut messages on an idle slot. Poll GET until its state is ready.

    An existing summary is replaced.
    """
    cut = _cut(request, pk)
    if cut.summary is not None and cut.summary.state == SummaryState.RUNNING:
        raise ApiError(409, "still_summarising", "A summary is already being generated.")
    summaries.start_summary(Message.objects.get(pk=cut.upto))
    return Status(202, _cut(request, pk))


@router.delete("/conversations/{int:pk}/summary", response={204: None})
def delete_summary(request: HttpRequest, pk: int) -> Any:
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


def _cut(request: HttpRequest, pk: int) -> Cut:
    cut = find_cut(Branch.active(get_conversation(request, pk)))
    if cut is None:
        raise NotFound("cut")
    return cut
