"""Reviewing rows one by one."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.batch.services import wake_pump
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore, similar_rows
from apps.generation.review.edit_row import edit_row
from apps.generation.review.restore import can_restore
from apps.generation.review.undo import undo_review, undo_token
from apps.generation.views.jobs import jobs_of


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one row: the requested one, else the first in the queue."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    asked = request.GET.get("at", "")
    at = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else None
    after = -1 if at is None else at - 1
    context = _context(found, _filters(request.GET), after=after, exact=at)
    fragment = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    template = "generation/review/_review.html" if fragment else "generation/review/review.html"
    return render(request, template, context)


@require_POST
def judge(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """Accept, reject or change a row; the next one comes back."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    item = get_object_or_404(Item, batch_id=found.batch_id, index=index)
    before, action = undo_token(item), request.POST.get("action")
    if action == "undo":
        problem = _undo(found, item, request.POST.get("before", ""))
    else:
        problem = decide(found, item, request.POST)
    filters = _filters(request.POST)
    # What was changed, taken back, or could not be done, stays in sight.
    stays = bool(problem) or action in ("edit", "undo")
    after = index - 1 if stays else index
    context = _context(found, filters, after=after, exact=index if stays else None)
    context["problem"] = problem
    if not stays:
        item.refresh_from_db()
        context |= {"before": item, "judged": item, "undo": before}
    if not request.headers.get("HX-Request"):
        return redirect(f"{reverse('generation:review', args=[pk])}?status={filters['status']}")
    return render(request, "generation/review/_review.html", context)


def _undo(found: Job, item: Item, before: str) -> str:
    """Undo the last review of a row; return the reason if that failed, else ""."""
    try:
        undo_review(item, before, found.spec)
    except WrongState as error:
        return str(error)
    wake_pump(found.batch.server_id)
    return ""


def decide(found: Job, item: Item, data: QueryDict) -> str:
    """Accept, reject or edit a row by a form; return the reason if that failed, else "".

    Raises:
        Http404: the action is unknown.
    """
    action, prefix = data.get("action"), "field-"
    try:
        if action == "accept":
            _accept(item, found.spec)
            wake_pump(found.batch.server_id)
        elif action == "reject":
            batches.reject_row(item)
            wake_pump(found.batch.server_id)
        elif action == "edit":
            given = {
                name.removeprefix(prefix): str(value)
                for name, value in data.items()
                if name.startswith(prefix)
            }
            edit_row(item, given, found.spec)
        else:
            raise Http404
    except (WrongState, RecipeError) as error:
        return str(error)
    return ""


def _accept(item: Item, spec: Spec) -> None:
    if item.status == ItemStatus.REJECTED:
        restore.restore(item, spec)
    else:
        batches.mark_reviewed(item)


def _filters(data: Any) -> dict[str, Any]:
    status = data.get("status", "")
    known = {ItemStatus.ACCEPTED, ItemStatus.REJECTED}
    return {
        "status": status if status in known else ItemStatus.ACCEPTED,
        "unseen": data.get("unseen") == "1",
    }


def _context(
    found: Job, filters: dict[str, Any], *, after: int, exact: int | None = None
) -> dict[str, Any]:
    rows = similar_rows.review_queue(found, filters["status"], unseen=filters["unseen"])
    item = rows.filter(index__gt=after).first()
    if exact is not None:  # a word about a row may have taken it out of those left
        item = batches.rows_of(found.batch_id).filter(index=exact).first() or item
    spec = found.spec
    context: dict[str, Any] = {"job": found, "item": item, **filters}
    if item is not None:
        fields = similar_rows.row_fields(spec, item) if item.current_output is not None else []
        context |= {
            "fields": fields,
            "can_edit": any(field.editable for field in fields),
            "unparsed_reply": restore.unparsed_reply(spec, item),
            "can_accept": item.status == ItemStatus.ACCEPTED or can_restore(spec, item),
            "neighbours": similar_rows.find_similar_rows(spec, item),
            "before": rows.filter(index__lt=item.index).order_by("-index").only("index").first(),
            "next": rows.filter(index__gt=item.index).only("index").first(),
            "left": rows.filter(index__gte=item.index).count(),
        }
    return context
