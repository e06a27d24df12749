"""Exports as streamed downloads."""

from django.http import Http404, StreamingHttpResponse
from django.utils import timezone

from apps.chat.transfer import exports


def download(ids: list[int], form: str, title: str = "") -> StreamingHttpResponse:
    """Stream conversations as one file. The caller checks the owner."""
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
