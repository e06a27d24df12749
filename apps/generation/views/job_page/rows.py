"""The rows of a job: the table, how many are new, one row, and many of them judged at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.batch import services as batches
from apps.batch.models import ACTIVE, Item, ItemStatus
from apps.generation.exports import row_fields
from apps.generation.figures.hint import hint_of
from apps.generation.models import Job
from apps.generation.recipe.columns.judge import Criterion
from apps.generation.recipe.recipe import Recipe
from apps.generation.recipe.spec import Spec
from apps.generation.review.reasons import label_of
from apps.generation.review.restore import can_restore, unparsed_reply
from apps.generation.row_search.columns import criteria_of, filter_columns
from apps.generation.row_search.row_filter import ALL, FINISHED, NEWEST, UNSEEN, RowFilter, sorts
from apps.generation.rows import preview
from apps.generation.rows.conversations import last_reply, messages_of
from apps.generation.views.job_page.job_list import job_list
from apps.generation.views.jobs import jobs_of
from apps.generation.views.row_review.row_card import card_of

ROWS_A_PAGE = 25
FIELDS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row as the table shows it."""

    item: Item
    text: str
    """The first written column, or what the model wrote instead."""
    cells: list[str]
    score: str
    share: float | None
    """The score as a share of the largest."""
    too_low: bool

    @property
    def has_fields(self) -> bool:
        return bool(self.text or any(self.cells))


def row_table(request: HttpRequest, found: Job) -> dict[str, Any]:
    """Build a page of rows, filtered and in order; of an active job the newest first."""
    active = found.batch.status in ACTIVE
    chosen = RowFilter.of(found, request.GET)
    if active and not chosen.sort and chosen.name in FINISHED:
        chosen = replace(chosen, sort=NEWEST)
    page = Paginator(_rows(found, chosen), ROWS_A_PAGE).get_page(request.GET.get("page"))
    spec = found.spec
    criterion = next(iter(criteria_of(spec.recipe)), None)
    names = _shown_names(spec.recipe)[:FIELDS_SHOWN]
    progress = batches.compute_progress(found.batch)
    return {
        "job": found,
        "page": page,
        "table": [_table_row(spec, item, names, criterion) for item in _items(found, page)],
        "fields": names,
        "criterion": criterion,
        "filter": chosen,
        "segments": _segments(chosen, progress.counts, active),
        "columns": filter_columns(spec.recipe),
        "chosen_values": dict(chosen.values),
        "sorts": sorts(spec.recipe).items(),
        "sort": chosen.sort or (NEWEST if chosen.name == NEWEST else "number"),
        "clear_code": chosen.query(code=""),
        "review_query": review_query(chosen),
        "code_label": label_of(chosen.code) if chosen.code else "",
        "watches": active and chosen.sort == NEWEST and page.number == 1 and not chosen.is_narrow,
        "now": timezone.now().isoformat(),
        "no_rows": page.paginator.count == 0,
        "notice": "",
        "problems": [],
        "hint": hint_of(progress.reasons, can_retry=progress.counts[ItemStatus.FAILED] > 0),
    }


def _rows(found: Job, chosen: RowFilter) -> Any:
    """The rows in order; where every row has to be read for it, their keys, read once."""
    rows = chosen.rows(found)
    return list(rows.values_list("pk", flat=True)) if chosen.is_narrow else rows


def _items(found: Job, page: Any) -> list[Item]:
    items = list(page.object_list)
    if not items or isinstance(items[0], Item):
        return items
    known = batches.rows_of(found.batch_id).in_bulk(items)
    return [known[key] for key in items if key in known]


def review_query(chosen: RowFilter) -> str:
    """The same rows in Review; it has rows that can be judged alone."""
    if chosen.name in (ItemStatus.ACCEPTED, ItemStatus.REJECTED):
        return chosen.query()
    return chosen.query(status=UNSEEN, sort="" if chosen.sort == NEWEST else chosen.sort)


def _shown_names(recipe: Recipe) -> list[str]:
    """The columns of the table: the written texts first, without what a judge said."""
    scored = {criterion.name for criterion in criteria_of(recipe)}
    judged = {name for column in recipe.written for name in column.names}
    judged -= {name for column in recipe.text_columns for name in column.names}
    return [name for name in recipe.table_fields if name not in scored | judged]


def _segments(
    chosen: RowFilter, counts: Mapping[str, int], active: bool
) -> list[tuple[str, str, int | None, bool]]:
    """The states to choose from: address, label, number of rows, whether it is chosen."""
    first = NEWEST if active else ALL
    shown = [
        (first, "All", None),
        (ItemStatus.ACCEPTED, "Accepted", None),
        (ItemStatus.REJECTED, "Rejected", counts[ItemStatus.REJECTED] or None),
        (UNSEEN, "Unreviewed", None),
    ]
    if counts[ItemStatus.FAILED]:
        shown.insert(3, (ItemStatus.FAILED, "Failed", counts[ItemStatus.FAILED]))
    # A table that was opened while the job ran stays in its order when the job ends.
    name_chosen = first if chosen.name in {ALL, NEWEST} else chosen.name
    return [
        (chosen.query(status=name, code=""), label, rows, name == name_chosen)
        for name, label, rows in shown
    ]


def _table_row(
    spec: Spec, item: Item, names: Sequence[str], criterion: Criterion | None
) -> TableRow:
    wanted = [*names, *([criterion.name] if criterion else [])]
    cells = row_fields.cells(spec, item, wanted) or [""] * len(wanted)
    score = cells.pop() if criterion else ""
    value = int(score) if score.isdecimal() else None
    text, *others = cells or [""]
    if item.reason and not text:
        text = unparsed_reply(spec, item)
    return TableRow(
        item,
        text,
        others,
        score,
        None if value is None or criterion is None else min(1.0, value / criterion.largest),
        value is not None and criterion is not None and value < criterion.at_least,
    )


@require_safe
def new_rows(request: HttpRequest, pk: int) -> HttpResponse:
    """Say how many rows came since the table was shown. Nothing moves before it is clicked.

    Where the table was empty, nothing can move: the rows come by themselves.
    """
    found = get_object_or_404(jobs_of(request), pk=pk)
    since = _time(request.GET.get("since", ""))
    chosen = RowFilter.of(found, request.GET)
    rows = chosen.rows(found).filter(finished__gt=since).count() if since else 0
    context = {
        "job": found,
        "new": rows,
        "since": request.GET.get("since", ""),
        "filter": chosen,
        "watches": found.batch.status in ACTIVE,
        "is_empty": "empty" in request.GET,
    }
    return render(request, "generation/rows/_new_rows.html", context)


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if timezone.is_aware(found) else None


@require_safe
def row(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    found = get_object_or_404(jobs_of(request), pk=pk)
    items = batches.rows_of(found.batch_id)
    item = get_object_or_404(items, index=index)
    spec = found.spec
    context = {
        "job": found,
        "item": item,
        "messages_sent": messages_of(spec, item),
        "reply": last_reply(spec, item),
        "output": preview.format_json(_as_written(spec, item)),
        "edited": preview.format_json(item.edited),
        "card": card_of(spec, item, whole=True),
        "before": items.filter(index__lt=index).order_by("-index").only("index").first(),
        "after": items.filter(index__gt=index).order_by("index").only("index").first(),
        "restorable": can_restore(spec, item),
        "tells_cached": batches.reports_cached_tokens(found.batch),
        **job_list(request, found),
    }
    return render(request, "generation/rows/row.html", context)


def _as_written(spec: Spec, item: Item) -> Any:
    """The row without a person's changes, older ones with all that was judged."""
    if item.output is None:
        return None
    return row_fields.full_row(spec, item) if item.edited is None else item.output
