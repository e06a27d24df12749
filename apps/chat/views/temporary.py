"""Temporary chats: keeping one, and what its page tells while it is open and when it is left."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.chat.conversations import temporary
from apps.chat.views.lookups import get_conversation


@require_POST
def keep(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a temporary chat an ordinary one."""
    temporary.keep(get_conversation(request, pk))
    messages.success(request, "Chat kept.")
    return redirect("chat:conversation", pk)


@require_POST
def stay(request: HttpRequest, pk: int) -> HttpResponse:
    """Note that a page of the chat is open."""
    temporary.stay(get_conversation(request, pk))
    return HttpResponse(status=204)


@require_POST
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Note that a page of the chat was closed."""
    temporary.leave(get_conversation(request, pk))
    return HttpResponse(status=204)
