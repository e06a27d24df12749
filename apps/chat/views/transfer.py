"""Conversations out of the workbench and into it: files, and copies for the team."""

import uuid
from typing import IO, Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.conversations import sharing
from apps.chat.models import Conversation, Share
from apps.chat.transfer import exports, read, write
from apps.chat.views.conversation import get_conversation, page_of
from apps.core.api import owner
from apps.core.quotas import limited


@require_safe
def export(request: HttpRequest, pk: int, form: str) -> HttpResponseBase:
    found = get_conversation(request, pk)
    if form == "jsonl" and not exports.one(found, form):
        messages.error(
            request, "This chat has no finished answer yet, so there is no training data to export."
        )
        return redirect("chat:conversation", pk)
    return download([found.pk], form, str(found))


@require_POST
def export_many(request: HttpRequest) -> StreamingHttpResponse:
    """Those that were ticked."""
    ids = [int(pk) for pk in request.POST.getlist("id") if pk.isdecimal()]
    mine = Conversation.objects.owned_by(owner(request)).filter(pk__in=ids)
    return download(list(mine.values_list("pk", flat=True)), request.POST.get("as", "jsonl"))


@require_safe
def export_all(request: HttpRequest, form: str) -> StreamingHttpResponse:
    mine = Conversation.objects.owned_by(owner(request)).order_by("pk")
    return download(list(mine.values_list("pk", flat=True)), form)


def download(ids: list[int], form: str, title: str = "") -> StreamingHttpResponse:
    """The owner's conversations of these keys as one file, streamed."""
    if form not in exports.FORMATS:
        raise Http404
    chosen = exports.FORMATS[form]
    name = exports.file_name(title or f"conversations-{timezone.now():%Y-%m-%d}", chosen.suffix)
    return StreamingHttpResponse(
        exports.export(ids, form),
        headers={
            "Content-Type": chosen.content_type,
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@limited("readings")
def import_page(request: HttpRequest) -> HttpResponse:
    """The form; on POST all conversations of a file, or none of them."""
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
    return render(request, "chat/import.html", context | page_of(request), status=status)


@require_POST
def share(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        with_thinking = "thinking" in request.POST
        found = get_conversation(request, pk)
        made = sharing.share(owner(request), found, with_thinking=with_thinking)
    except sharing.NothingToShare as error:
        messages.error(request, str(error))
        return redirect("chat:conversation", pk)
    return redirect("chat:shared", made.token)


@require_safe
def shared(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """For everybody with a login and the link; nothing on it can be changed."""
    found = get_object_or_404(
        Share.objects.select_related("owner").filter(
            conversation__deleted_at=None, owner__is_active=True
        ),
        token=token,
    )
    context = {
        "share": found,
        "is_mine": found.owner_id == owner(request).pk,
        "link": request.build_absolute_uri(),
    }
    return render(request, "chat/shared.html", context)


@require_POST
def unshare(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    found = get_object_or_404(Share.objects.owned_by(owner(request)), token=token)
    found.delete()
    messages.success(request, "Sharing stopped. The link no longer works.")
    if request.POST.get("back") == "list":
        return redirect("chat:preferences")
    return redirect("chat:conversation", found.conversation_id)
