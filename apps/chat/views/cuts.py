"""What is kept of the beginning of a conversation: pins and summaries."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from apps.chat.answering import summaries
from apps.chat.conversations import context_meter, cuts, services
from apps.chat.models import Conversation, Message
from apps.chat.views.conversation import get_conversation
from apps.core.api import get_owned


@require_POST
def pin_message(request: HttpRequest, pk: int) -> HttpResponse:
    """Keeps a message in the prompt when the beginning is cut, or no longer."""
    found = get_owned(Message.objects.select_related("conversation"), request, pk)
    found.pinned = not found.pinned
    found.save(update_fields=["pinned"])
    return render(request, "chat/thread/_pin.html", {"message": found})


@require_http_methods(["GET", "HEAD", "POST", "DELETE"])
def summary(request: HttpRequest, pk: int) -> HttpResponse:
    """The line where a conversation was cut. POST summarises what is above; DELETE forgets that."""
    conversation = get_conversation(request, pk)
    cut = _cut(conversation)
    if cut is not None and request.method == "POST":
        summaries.begin(Message.objects.get(pk=cut.upto))
    elif cut is not None and cut.summary is not None and request.method == "DELETE":
        cut.summary.delete()
    return render(request, "chat/thread/_context_cut.html", _shown(conversation))


def _shown(conversation: Conversation) -> dict[str, Any]:
    return {"conversation": conversation, "cut": _cut(conversation)}


def _cut(conversation: Conversation) -> cuts.Cut | None:
    branch = services.Branch.active(conversation)
    cut = cuts.cut_of(branch, context_meter.turns_of(branch))
    if cut is not None and cut.summary is not None:
        summaries.settle(cut.summary)
    return cut
