"""The messages of a conversation as a fragment of its page."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.chat.answering import prefill
from apps.chat.conversations import context_meter, cuts, model_state
from apps.chat.conversations.branch_view import Branch, Window, window
from apps.chat.errors import ChatError
from apps.chat.views.lookups import get_conversation


def thread_context(branch: Branch, part: Window) -> dict[str, Any]:
    """Return the template context of a part of a branch."""
    conversation = branch.conversation
    turns = context_meter.measure(branch)
    context: dict[str, Any] = {
        "conversation": conversation,
        "views": part.views,
        "earlier": part.earlier,
        "cut": cuts.find_cut(branch, turns),
    } | model_state.model_context(conversation)
    target = context.get("target")
    server = target.server if target else None
    context["prefill_drafts"] = prefill.is_allowed(conversation.owner_id, server)
    if turns:
        size = server.context_of(target.model) if server and target else None
        context["meter"] = context_meter.ContextMeter(turns, size)
    return context


def whole_thread(
    request: HttpRequest, pk: int, *, status: int = 200, **notice: Any
) -> HttpResponse:
    """Render the active branch.

    Args:
        notice: deleted, restored or changed_elsewhere: what the page reports above it.
    """
    branch = Branch.active(get_conversation(request, pk))
    context = thread_context(branch, window(branch)) | notice
    return render(request, "chat/thread/_thread_update.html", context, status=status)


def replace_thread(thread: HttpResponse) -> HttpResponse:
    """Make the page replace its whole thread, whatever part it asked for."""
    thread["HX-Retarget"], thread["HX-Reswap"] = "#thread", "innerHTML"
    return thread


def refuse(request: HttpRequest, error: ChatError) -> HttpResponse:
    """Render an error above the composer."""
    response = render(request, "chat/composer/_error.html", {"sentence": str(error)}, status=422)
    response["HX-Retarget"], response["HX-Reswap"] = "#refused", "innerHTML"
    return response
