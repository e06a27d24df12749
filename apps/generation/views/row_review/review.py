"""Reviewing rows one by one."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import OPEN, Item, ItemStatus
from apps.batch.services import wake_pump
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore, similar_rows
from apps.generation.review.edit_row import edit_row
from apps.generation.review.restore import can_restore
from apps.generation.review.shown_row import shown_row
from apps.generation.review.undo import undo_review, undo_token
from apps.generation.row_search.columns import filter_columns
from apps.generation.row_search.row_filter import NEWEST, UNSEEN, RowFilter, sorts
from apps.generation.views.jobs import jobs_of

MAX_QUEUE = 500
"""Rows whose order the page knows beforehand; behind them it asks again."""
SEGMENTS = (
    (UNSEEN, "Unreviewed"),
    (ItemStatus.ACCEPTED, "Accepted"),
    (ItemStatus.REJECTED, "Rejected"),
)
REVIEWED = tuple(name for name, _ in SEGMENTS)


@dataclass(frozen=True, slots=True)
class Queue:
    """The rows to look through, in order, and where one is in them."""

    chosen: RowFilter
    indices: list[int]

    @classmethod
    def of(cls, found: Job, query: Any) -> "Queue":
        """Read the filter of an address; `unseen=1` is an older name of a status."""
        asked = query.get("status", "")
        status = asked if asked in REVIEWED else ItemStatus.ACCEPTED
        if status == ItemStatus.ACCEPTED and query.get("unseen") == "1":
            status = UNSEEN
        given = {name: str(query.get(name, "")) for name in query if name != "unseen"}
        chosen = RowFilter.of(found, given | {"status": status})
        return cls(chosen, list(chosen.rows(found).values_list("index", flat=True)))

    def place_of(self, index: int) -> int:
        """The place of a row; of one that has left the queue, the place where it was."""
        try:
            return self.indices.index(index)
        except ValueError:
            by_number = self.chosen.sort in ("", "number")
            return bisect_left(self.indices, index) if by_number else 0


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one row: the requested one, else the first in the queue. For htmx the row alone."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    asked = request.GET.get("at", "")
    at = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else None
    if at is not None and request.headers.get("HX-Request"):
        item = batches.rows_of(found.batch_id).filter(index=at).first()
        if item is not None:
            return render(request, "generation/review/_row.html", row_context(found, item))
    queue = Queue.of(found, request.GET)
    context = _context(found, queue, 0 if at is None else queue.place_of(at), exact=at)
    fragment = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    template = "generation/review/_review.html" if fragment else "generation/review/review.html"
    return render(request, template, context)


@require_POST
def judge(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """Accept, reject or change a row. For htmx: what became of it, with the token of an undo."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    item = get_object_or_404(Item, batch_id=found.batch_id, index=index)
    queue = Queue.of(found, request.POST)
    before, action = undo_token(item), request.POST.get("action")
    if action == "undo":
        problem = _undo(found, item, request.POST.get("before", ""))
    else:
        problem = decide(found, item, request.POST)
    item.refresh_from_db()
    if not request.headers.get("HX-Request"):
        query = f"status={queue.chosen.name}"
        return redirect(f"{reverse('generation:review', args=[pk])}?{query}")
    # What was changed, taken back, or could not be done, stays in sight.
    stays = bool(problem) or action in ("edit", "undo")
    place = queue.place_of(index)
    context = _context(
        found, queue, place if stays else place + 1, exact=index if stays else None, left_by=item
    )
    context |= {"problem": problem, "judged": item, "undo": "" if problem else before}
    return render(request, "generation/review/_judged.html", context)


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


def row_context(found: Job, item: Item) -> dict[str, Any]:
    """Build the context of one row; its neighbours are looked for when they are shown."""
    spec = found.spec
    row = shown_row(spec, item)
    fields = [*row.texts, *row.values, *row.reasons]
    return {
        "job": found,
        "item": item,
        "row": row,
        "fields": fields,
        "problem": "",
        "can_edit": any(field.editable for field in fields),
        "unparsed_reply": restore.unparsed_reply(spec, item),
        "can_accept": item.status == ItemStatus.ACCEPTED or can_restore(spec, item),
        "neighbours": SimpleLazyObject(lambda: similar_rows.find_similar_rows(spec, item)),
    }


def _context(
    found: Job, queue: Queue, place: int, *, exact: int | None = None, left_by: Item | None = None
) -> dict[str, Any]:
    """Build the context of a place in the queue.

    Args:
        exact: show this row, also if it is not (or no longer) in the queue.
        left_by: the row that was just judged: one step back from the end.
    """
    rows = batches.rows_of(found.batch_id)
    indices, chosen = queue.indices, queue.chosen
    item = rows.filter(index=exact).first() if exact is not None else None
    if item is None and place < len(indices):
        item = rows.filter(index=indices[place]).first()
    in_queue = item is not None and place < len(indices) and indices[place] == item.index
    follows = indices[place + in_queue : place + in_queue + 1]
    earlier = indices[place - 1 : place] if place else []
    context: dict[str, Any] = {
        "job": found,
        "item": item,
        "before": rows.filter(index__in=earlier).only("index").first(),
        "next": rows.filter(index__in=follows).only("index").first(),
        "left": len(indices) - place,
        "total": len(indices),
        "has_rows": bool(indices) or rows.exclude(status__in=OPEN).exists(),
        "place": place,
        "queue": indices[place : place + MAX_QUEUE],
        "problem": "",
        **_filter_context(found.spec.recipe, chosen),
    }
    if left_by is not None and item is None:
        context["before"] = left_by
    return context | (row_context(found, item) if item is not None else {})


def _filter_context(recipe: Recipe, chosen: RowFilter) -> dict[str, Any]:
    return {
        "status": ItemStatus.ACCEPTED if chosen.name == UNSEEN else chosen.name,
        "unseen": chosen.name == UNSEEN,
        "filter": chosen,
        "segments": [
            (chosen.query(status=name), label, name == chosen.name) for name, label in SEGMENTS
        ],
        "columns": filter_columns(recipe),
        "chosen_values": dict(chosen.values),
        "sorts": sorts(recipe).items(),
        "sort": chosen.sort or ("number" if chosen.name != NEWEST else NEWEST),
    }
