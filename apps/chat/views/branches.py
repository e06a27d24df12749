"""Changes to the tree of a conversation. Each renders the thread afterwards."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversations import branches
from apps.chat.conversations.branch_view import view_of
from apps.chat.errors import ChatError
from apps.chat.models import Message, Role
from apps.chat.views.lookups import get_answer, get_message
from apps.chat.views.thread import refuse, whole_thread
from apps.core.api import get_owned, owner


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """Render one question, when its editing is cancelled."""
    found = _get(request, pk)
    return render(
        request, "chat/thread/_user_message.html", {"item": view_of(found), "message": found}
    )


@require_safe
def edit_form(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "chat/thread/_edit_message.html", {"message": _get(request, pk)})


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask an edited version of a question."""
    found = _get(request, pk)
    try:
        branches.edit(found, request.POST.get("content", ""))
    except ChatError as error:
        return refuse(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer a question whose answer was deleted."""
    found = _get(request, pk)
    try:
        branches.answer(found)
    except ChatError as error:
        return refuse(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def continue_answer(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_answer(request, pk)
    try:
        branches.continue_answer(found)
    except ChatError as error:
        return refuse(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def delete_message(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a message and all that follows it; the page offers Undo."""
    deleted = branches.delete(get_message(request, pk))
    return whole_thread(request, deleted.root.conversation_id, deleted=deleted)


@require_POST
def restore_message(request: HttpRequest, pk: int) -> HttpResponse:
    root = get_object_or_404(Message.objects.deleted_by(owner(request)), pk=pk)
    branches.restore(root)
    return whole_thread(request, root.conversation_id, restored=True)


def _get(request: HttpRequest, pk: int) -> Message:
    return get_owned(
        Message.objects.filter(role=Role.USER).select_related("conversation"), request, pk
    )
