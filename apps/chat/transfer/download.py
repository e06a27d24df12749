"""Exports as streamed downloads."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.http import Http404, StreamingHttpResponse
from django.utils import timezone

from apps.chat.models import Conversation, Project
from apps.chat.transfer import exports


def download_all(owner: User, form: str) -> StreamingHttpResponse:
    """Stream all conversations of a person; in JSON their projects and documents too."""
    chats = Conversation.objects.owned_by(owner).order_by("pk").values_list("pk", flat=True)
    projects = Project.objects.owned_by(owner).order_by("pk").values_list("pk", flat=True)
    return download(list(chats), form, projects=list(projects))


def download(
    ids: list[int], form: str, title: str = "", projects: Sequence[int] = ()
) -> StreamingHttpResponse:
    """Stream conversations as one file. The caller checks the owner."""
    if form not in exports.FORMATS:
        raise Http404
    chosen = exports.FORMATS[form]
    name = exports.file_name(title or f"conversations-{timezone.now():%Y-%m-%d}", chosen.suffix)
    return StreamingHttpResponse(
        exports.export(ids, form, projects),
        headers={
            "Content-Type": chosen.content_type,
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
