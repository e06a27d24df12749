"""The cut of a conversation: pinned messages and summaries."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from apps.chat.answering import summaries
from apps.chat.conversations.branch_view import Branch
from apps.chat.conversations.cuts import Cut, find_cut
from apps.chat.models import Conversation, Message
from apps.chat.views.lookups import get_conversation, get_message


@require_POST
def pin_message(request: HttpRequest, pk: int) -> HttpResponse:
    """Pin or unpin a message: pinned ones stay in the prompt when the beginning is cut."""
    found = get_message(request, pk)
    found.pinned = not found.pinned
    found.save(update_fields=["pinned"])
    return render(request, "chat/thread/_pin.html", {"message": found})


@require_http_methods(["GET", "HEAD", "POST", "DELETE"])
def summary(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the cut. POST starts a summary of the cut messages; DELETE deletes it."""
    conversation = get_conversation(request, pk)
    cut = _cut(conversation)
    if cut is not None and request.method == "POST":
        summaries.start_summary(Message.objects.get(pk=cut.upto))
    elif cut is not None and cut.summary is not None and request.method == "DELETE":
        cut.summary.delete()
    context = {"conversation": conversation, "cut": _cut(conversation)}
    return render(request, "chat/thread/_context_cut.html", context)


def _cut(conversation: Conversation) -> Cut | None:
    return find_cut(Branch.active(conversation))
