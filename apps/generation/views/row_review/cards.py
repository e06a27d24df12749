"""The rows of a job as a grid of cards, each of which can be judged where it stands."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.batch.models import Item, ItemStatus
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore, similar_rows
from apps.generation.review.reasons import label_of
from apps.generation.review.shown_row import Score, is_text, scores_of
from apps.generation.row_search.row_filter import FILTERS, RowFilter
from apps.generation.views.job_page.job_list import job_list
from apps.generation.views.job_page.rows import review_query
from apps.generation.views.jobs import jobs_of
from apps.generation.views.row_review.review import decide

CARDS_A_PAGE = 24  # full lines of one, two, three or four
FIELDS_SHOWN = 6
CLIPPED = 280  # characters


@dataclass(frozen=True, slots=True)
class Card:
    """A row as its card shows it: clipped, in whole, or as a form."""

    item: Item
    fields: list[similar_rows.RowField]
    scores: list[Score]
    fields_left: int
    is_long: bool
    """Clipped, it does not show everything."""
    clip: int | None
    """Max characters shown per field; None: all."""
    edits: bool
    can_accept: bool
    """True if accepting it changes anything."""
    unparsed_reply: str
    """The last output of the model, if no field shows it."""

    @property
    def can_edit(self) -> bool:
        return any(field.editable for field in self.fields)

    @property
    def texts(self) -> list[similar_rows.RowField]:
        """Fields to read: the long ones, or the first. A form leaves those that it edits out."""
        shown = [field for field in self.fields if not (self.edits and field.editable)]
        return [field for field in shown if is_text(field)] or shown[:1]

    @property
    def values(self) -> list[similar_rows.RowField]:
        """The short ones."""
        texts = self.texts
        edited = [field for field in self.fields if self.edits and field.editable]
        return [field for field in self.fields if field not in texts and field not in edited]


def card_of(spec: Spec, item: Item, *, whole: bool = False, edits: bool = False) -> Card:
    fields = similar_rows.row_fields(spec, item) if item.current_output is not None else []
    order = {name: at for at, name in enumerate(spec.recipe.table_fields)}
    fields.sort(key=lambda field: order.get(field.name, len(order)))
    scores = scores_of(spec.recipe, fields)
    if not edits:
        scored = {score.name for score in scores}
        fields = [field for field in fields if field.name not in scored]
    everything = whole or edits
    shown = fields if everything else fields[:FIELDS_SHOWN]
    left = len(fields) - len(shown)
    unparsed = restore.unparsed_reply(spec, item)
    texts = [*(field.value for field in fields), unparsed]
    is_long = len(fields) > FIELDS_SHOWN or any(len(text) > CLIPPED for text in texts)
    is_new = item.status == ItemStatus.ACCEPTED and not item.reviewed
    accept = is_new or restore.can_restore(spec, item)
    clip = None if everything else CLIPPED
    return Card(item, shown, scores, left, is_long, clip, edits, accept, unparsed)


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """A page of cards, by the filters of the table."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    shown = RowFilter.of(found, request.GET)
    stretch = shown.page(found, request.GET, CARDS_A_PAGE)
    spec = found.spec
    context = {
        "job": found,
        "stretch": stretch,
        "cards": [card_of(spec, item) for item in stretch.items],
        "filter": shown,
        "review_query": review_query(shown),
        "status": shown.name,
        "code": shown.code,
        "code_label": label_of(shown.code) if shown.code else "",
        "filters": FILTERS.items(),
        "here": urlencode(request.GET),
        **job_list(request, found),
    }
    return render(request, "generation/rows/cards.html", context)


@require_safe
def card(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """Show a card: `?show=whole` with all its text, `?show=form` to edit it."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    item = get_object_or_404(Item, batch_id=found.batch_id, index=index)
    show = request.GET.get("show")
    shown = card_of(found.spec, item, whole=show == "whole", edits=show == "form")
    return render(request, "generation/rows/_card.html", {"job": found, "card": shown})


@require_POST
def judge(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """Accept, reject or change a row; its card comes back, with what became of it."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    item = get_object_or_404(Item, batch_id=found.batch_id, index=index)
    problem = decide(found, item, request.POST)
    if not request.headers.get("HX-Request"):
        if problem:
            messages.error(request, problem)
        return redirect(f"{reverse('generation:cards', args=[pk])}?{urlencode(request.GET)}")
    item.refresh_from_db()
    edits = bool(problem) and request.POST.get("action") == "edit"
    context = {"job": found, "card": card_of(found.spec, item, edits=edits), "problem": problem}
    return render(request, "generation/rows/_card.html", context)
