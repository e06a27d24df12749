"""The rows of a job as a grid of cards, each of which can be judged where it stands."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.batch.models import Item
from apps.generation.review.reasons import label_of
from apps.generation.row_search.row_filter import FILTERS, RowFilter
from apps.generation.views.job_page.job_list import job_list
from apps.generation.views.job_page.rows import review_query
from apps.generation.views.jobs import jobs_of
from apps.generation.views.row_review.review import decide
from apps.generation.views.row_review.row_card import card_of

CARDS_A_PAGE = 24  # full lines of one, two, three or four


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
