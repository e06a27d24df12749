"""Export, import and sharing of conversations."""

import uuid
from typing import IO, Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.conversations import ratings, sharing
from apps.chat.errors import TemporaryChat
from apps.chat.lookups import get_kept
from apps.chat.models import Conversation, Share
from apps.chat.transfer import exports, read, write
from apps.chat.transfer.download import download, download_all
from apps.chat.views.chat_list import sidebar_context
from apps.chat.views.lookups import get_conversation
from apps.core.api import owner
from apps.core.quotas import limited


@require_safe
def export(request: HttpRequest, pk: int, form: str) -> HttpResponseBase:
    try:
        found = get_kept(request, pk)
    except TemporaryChat as error:
        messages.error(request, str(error))
        return redirect("chat:conversation", pk)
    if form == "jsonl" and not exports.export_one(found, form):
        messages.error(
            request, "This chat has no finished answer yet, so there is no training data to export."
        )
        return redirect("chat:conversation", pk)
    return download([found.pk], form, str(found))


@require_POST
def export_many(request: HttpRequest) -> StreamingHttpResponse:
    """Export the selected conversations."""
    ids = [int(pk) for pk in request.POST.getlist("id") if pk.isdecimal()]
    mine = Conversation.objects.owned_by(owner(request)).filter(pk__in=ids)
    return download(list(mine.values_list("pk", flat=True)), request.POST.get("as", "jsonl"))


@require_safe
def export_all(request: HttpRequest, form: str) -> StreamingHttpResponse:
    return download_all(owner(request), form)


@require_safe
def export_ratings(request: HttpRequest) -> StreamingHttpResponse:
    return ratings.download(owner(request))


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def import_page(request: HttpRequest) -> HttpResponse:
    """Render the form, or on POST import all conversations of a file, or none."""
    context: dict[str, Any] = {}
    if request.method == "POST":
        if (file := request.FILES.get("file")) is None:
            context["error"] = "Choose a file first."
        else:
            try:
                context["result"] = write.import_file(owner(request), cast(IO[bytes], file))
            except read.BadFile as error:
                context["error"] = f"{error} Nothing was imported."
    status = 422 if "error" in context else 200
    return render(request, "chat/import.html", context | sidebar_context(request), status=status)


@require_POST
def share(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        with_thinking = "thinking" in request.POST
        found = get_conversation(request, pk)
        made = sharing.share(owner(request), found, with_thinking=with_thinking)
    except (sharing.NothingToShare, TemporaryChat) as error:
        messages.error(request, str(error))
        return redirect("chat:conversation", pk)
    return redirect("chat:shared", made.token)


@require_safe
def shared(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """Render a read-only copy, for everyone with an account and the link."""
    found = _shared(token)
    context = {
        "share": found,
        "is_mine": found.owner_id == owner(request).pk,
        "link": request.build_absolute_uri(),
    }
    return render(request, "chat/shared.html", context)


@require_POST
def continue_shared(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """Open a shared copy as a new chat of the person who reads it."""
    return redirect("chat:conversation", sharing.continue_copy(owner(request), _shared(token)).pk)


def _shared(token: uuid.UUID) -> Share:
    live = Share.objects.filter(conversation__deleted_at=None, owner__is_active=True)
    return get_object_or_404(live.select_related("owner"), token=token)


@require_POST
def unshare(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    found = get_object_or_404(Share.objects.owned_by(owner(request)), token=token)
    found.delete()
    messages.success(request, "Sharing stopped. The link no longer works.")
    if request.POST.get("back") == "list":
        return redirect(f"{reverse('core:settings')}#shares")
    return redirect("chat:conversation", found.conversation_id)
