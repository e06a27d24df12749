"""Files of questions: taken in before the question is sent, shown to their owner alone."""

from contextlib import suppress
from typing import IO, cast

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.conversations import presets, services
from apps.chat.models import Attachment, AttachmentKind, Conversation
from apps.chat.prompt import attachments, pictures
from apps.chat.views.conversation import get_conversation, get_preset
from apps.core.api import get_owned, owner
from apps.servers import services as llm


@require_http_methods(["GET", "HEAD", "POST"])
def attach(request: HttpRequest) -> HttpResponse:
    """POST takes one file in; returns what the composer shows of it.

    GET shows files that wait with a draft again (`id`, several); what was sent or forgotten is left
    out.
    """
    if request.method != "POST":
        ids = [int(pk) for pk in request.GET.getlist("id") if pk.isdecimal() and len(pk) < 19]
        unsent = Attachment.objects.owned_by(owner(request)).filter(message=None, pk__in=ids)
        found, target = list(unsent.order_by("pk")), _target(request)
        attachments.count_pictures(found, target)  # perhaps it is another model's turn to see them
        return _composed(request, found, target)
    if (file := request.FILES.get("file")) is None:
        return render(
            request, "chat/composer/_error.html", {"sentence": "Choose a file."}, status=422
        )
    target = _target(request)
    try:
        made = attachments.receive(owner(request), file.name or "", cast(IO[bytes], file), target)
    except attachments.BadAttachment as error:
        status = 413 if isinstance(error, attachments.NoRoom) else 422
        return render(request, "chat/composer/_error.html", {"sentence": str(error)}, status=status)
    return _composed(request, [made], target)


def _composed(
    request: HttpRequest, found: list[Attachment], target: llm.Target | None
) -> HttpResponse:
    blind = target is not None and target.server.facts_of(target.model).vision is False
    context = {"attachments": found, "blind": blind, "target": target}
    if any(one.tokens is None for one in found) and not blind:
        context["unknown"] = pictures.unknown(owner(request), target)
    return render(request, "chat/composer/_attachments.html", context)


@require_POST
def detach(request: HttpRequest, pk: int) -> HttpResponse:
    """Before the question is sent; afterwards it is a part of what was said."""
    unsent = Attachment.objects.owned_by(owner(request)).filter(message=None)
    attachments.forget(get_object_or_404(unsent, pk=pk))
    return HttpResponse()


@require_safe
def attached(request: HttpRequest, pk: int) -> FileResponse:
    """Send the file itself. Only images are shown in the page; nothing of it may run.

    Raises:
        Http404: It is not theirs, or its file is not in the data folder.
    """
    found = get_owned(Attachment, request, pk)
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
    """Who is to read the files: of a conversation, or chosen for one that is yet to begin."""
    asked = request.POST if request.method == "POST" else request.GET
    pk = asked.get("conversation", "")
    if pk.isdecimal():
        found = get_conversation(request, int(pk))
    else:
        preset = get_preset(request, asked.get("preset", ""))
        found = Conversation(server=preset.server, model=preset.model)
        with suppress(presets.NotThere):
            server, model = presets.chosen(asked.get("model", ""))
            found.server, found.model = server or found.server, model or found.model
    try:
        return services.target_of(found)
    except llm.NoServer:
        return None
