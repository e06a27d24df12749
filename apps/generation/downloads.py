"""A job's rows as a download, for the page and the API alike."""

from django.http import StreamingHttpResponse

from apps.generation import services
from apps.generation.models import Job


def export_response(job: Job, chosen: services.Format) -> StreamingHttpResponse:
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in job.name)
    return StreamingHttpResponse(
        services.export(job, chosen),
        headers={
            "Content-Type": chosen.content_type,
            "Content-Disposition": f'attachment; filename="{name[:80]}{chosen.suffix}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
