"""Pages that change the tree of a conversation. Each returns the thread as it is then."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversations import branches, services
from apps.chat.models import Message, Role
from apps.chat.views.conversation import refused, whole_thread
from apps.core.api import get_owned, owner


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """One question, as it was before somebody began to edit it."""
    found = _get(request, pk)
    shown = services.place_of(found)
    return render(request, "chat/thread/_user_message.html", {"item": shown, "message": found})


@require_safe
def edit_form(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "chat/thread/_edit_message.html", {"message": _get(request, pk)})


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """The question in other words, beside the old one."""
    found = _get(request, pk)
    try:
        branches.edit(found, request.POST.get("content", ""))
    except services.ChatError as error:
        return refused(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """An answer to a question whose answer was taken away."""
    found = _get(request, pk)
    try:
        branches.answer(found)
    except services.ChatError as error:
        return refused(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def go_on(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_owned(Message.objects.answers().select_related("parent"), request, pk)
    try:
        branches.go_on(found)
    except services.ChatError as error:
        return refused(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes a message away with all that follows it, and offers to undo that."""
    removed = branches.remove(get_owned(Message, request, pk))
    return whole_thread(request, removed.root.conversation_id, removed=removed)


@require_POST
def restore(request: HttpRequest, pk: int) -> HttpResponse:
    root = get_object_or_404(Message.objects.removed_by(owner(request)), pk=pk)
    branches.restore(root)
    return whole_thread(request, root.conversation_id, restored=True)


def _get(request: HttpRequest, pk: int) -> Message:
    return get_owned(
        Message.objects.filter(role=Role.USER).select_related("conversation"), request, pk
    )
