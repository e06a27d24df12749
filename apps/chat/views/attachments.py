"""Attachments: uploaded before their question is sent, shown to their owner alone."""

from typing import IO, cast

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.attachments import image_tokens, receive
from apps.chat.attachments.file_text import BadAttachment
from apps.chat.conversations import services
from apps.chat.models import Attachment, AttachmentKind, Conversation
from apps.chat.views.lookups import get_chat_or_draft
from apps.core.api import owner
from apps.servers import services as llm


@require_http_methods(["GET", "HEAD", "POST"])
def attach(request: HttpRequest) -> HttpResponse:
    """Upload one file on POST, and render it for the composer.

    GET renders the files of a draft again (`id`, several), without those sent or deleted meanwhile.
    """
    if request.method != "POST":
        ids = [int(pk) for pk in request.GET.getlist("id") if pk.isdecimal() and len(pk) < 19]
        unsent = Attachment.objects.owned_by(owner(request)).filter(message=None, pk__in=ids)
        found, target = list(unsent.order_by("pk")), _target(request)
        image_tokens.count_images(found, target)  # perhaps for another model now
        return _render_files(request, found, target)
    if (file := request.FILES.get("file")) is None:
        return render(
            request, "chat/composer/_error.html", {"sentence": "Choose a file."}, status=422
        )
    target = _target(request)
    try:
        made = receive.receive(owner(request), file.name or "", cast(IO[bytes], file), target)
    except BadAttachment as error:
        context = {"sentence": str(error)}
        return render(request, "chat/composer/_error.html", context, status=error.status)
    return _render_files(request, [made], target)


def _render_files(
    request: HttpRequest, found: list[Attachment], target: llm.Target | None
) -> HttpResponse:
    has_no_vision = target is not None and target.server.facts_of(target.model).vision is False
    context = {"attachments": found, "has_no_vision": has_no_vision, "target": target}
    if any(one.tokens is None for one in found) and not has_no_vision:
        context["unknown"] = image_tokens.describe_unknown(owner(request), target)
    return render(request, "chat/composer/_attachments.html", context)


@require_POST
def detach(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a file before its question is sent. Afterwards it is part of the chat."""
    unsent = Attachment.objects.owned_by(owner(request)).filter(message=None)
    receive.delete(get_object_or_404(unsent, pk=pk))
    return HttpResponse()


@require_safe
def attachment_text(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the text of a file, which the composer puts into the message instead."""
    found = get_object_or_404(Attachment.objects.owned_by(owner(request)), pk=pk)
    return HttpResponse(found.text, content_type="text/plain; charset=utf-8")


@require_safe
def attachment(request: HttpRequest, pk: int) -> FileResponse:
    """Return the file. Only images are shown in the page, and nothing of a file may run."""
    found = get_object_or_404(Attachment.objects.owned_by(owner(request)), pk=pk)
    is_image = found.kind == AttachmentKind.IMAGE
    try:
        file = found.path.open("rb")
    except FileNotFoundError as error:
        raise Http404(f"The file “{found.name}” is not in the data folder.") from error
    answer = FileResponse(
        file,
        content_type=found.media_type if is_image else "application/octet-stream",
        as_attachment=not is_image,
        filename=found.name,
    )
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    answer["Cache-Control"] = "private, max-age=86400, immutable"
    return answer


def _target(request: HttpRequest) -> llm.Target | None:
    """Return the model that will process the files: the chat's, else the default."""
    fields = request.POST if request.method == "POST" else request.GET
    pk = fields.get("conversation", "")
    found = get_chat_or_draft(request, int(pk)) if pk.isdecimal() else Conversation()
    try:
        return services.target_of(found)
    except llm.NoServer:
        return None
