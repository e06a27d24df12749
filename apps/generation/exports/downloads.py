"""A job's rows as a download, for the page and the API alike."""

from collections.abc import Collection

from django.http import StreamingHttpResponse

from apps.generation.exports.export import export
from apps.generation.exports.formats import Format
from apps.generation.models import Job
from apps.generation.rows.conversations import Sides


def export_response(
    job: Job,
    chosen: Format,
    *,
    user: str | None = None,
    assistant: str | None = None,
    numbered: bool = False,
    indices: Collection[int] | None = None,
) -> StreamingHttpResponse:
    """The accepted rows, streamed.

    Args:
        user, assistant: of conversations the two fields, see `Sides.asked_for`.
        numbered: with each row's number.
        indices: of the only rows that are wanted; None: all.

    Raises:
        RecipeError: there is no such field.
    """
    sides = Sides.asked_for(job.spec.recipe, user, assistant)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in job.name)
    return StreamingHttpResponse(
        export(job, chosen, sides, numbered=numbered, indices=indices),
        headers={
            "Content-Type": chosen.content_type,
            "Content-Disposition": f'attachment; filename="{name[:80]}{chosen.suffix}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
