"""Looking through rows one by one, and how varied they are."""

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import ACTIVE, Item, ItemStatus
from apps.batch.services import wake_pump
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import embed_texts
from apps.generation import services
from apps.generation.exports.row_fields import full_row
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.spec import Spec
from apps.generation.review import diversity, restore, similar_rows
from apps.generation.review.restore import can_restore
from apps.generation.review.undo import undo_review, undo_token
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import stored_tables
from apps.generation.views.jobs import jobs_of
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Use
from apps.servers.services import NoServer, default_target

LABELS_SHOWN = 12
FEWEST = 5
EMBEDDED = 300


@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """One row at a time: the one asked for, or the first of those left."""
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
    """Takes the last word about a row back; returns why that could not be done, or nothing."""
    try:
        undo_review(item, before, found.spec)
    except WrongState as error:
        return str(error)
    wake_pump(found.batch.server_id)
    return ""


def decide(found: Job, item: Item, data: QueryDict) -> str:
    """Does with a row what a form says; returns why it could not be done, or nothing.

    Raises:
        Http404: that is nothing one can do with a row.
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
            services.edit(item, given, found.spec)
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
            "said": restore.unparsed_reply(spec, item),
            "can_accept": item.status == ItemStatus.ACCEPTED or can_restore(spec, item),
            "neighbours": similar_rows.find_similar_rows(spec, item),
            "before": rows.filter(index__lt=item.index).order_by("-index").only("index").first(),
            "next": rows.filter(index__gt=item.index).only("index").first(),
            "left": rows.filter(index__gte=item.index).count(),
        }
    return context


# --- Diversity ----------------------------------------------------------------


@require_safe
async def varied(request: HttpRequest, pk: int) -> HttpResponse:
    """How varied the accepted rows are, by label, beside the real rows they were made from.

    While the job runs this is asked again and again, and leaves out what has to be embedded.
    """
    owner = await request.auser()
    jobs = Job.objects.owned_by(owner).select_related("batch")
    found = await aget_object_or_404(jobs, pk=pk)
    runs = found.batch.status in ACTIVE
    spec = found.spec
    items = await in_db(similar_rows.sample_rows, found)
    texts = [
        "\n".join(answer_check.free_texts_of(spec.recipe, item.current_output)) for item in items
    ]
    groups = _by_label(spec, items, texts)
    seeds = await in_db(_seed_texts, spec, len(texts))
    measured = _without_vectors if runs and not request.GET.get("all") else _with_vectors
    lines = [("all rows", await measured(texts))]
    lines += [(label, await _without_vectors(part)) for label, part in groups]
    if seeds:
        # The figures depend on how many texts there are: as many of each are compared.
        step = len(texts) / len(seeds)
        fewer = [texts[int(at * step)] for at in range(len(seeds))]
        if len(fewer) < len(texts):
            lines.append((f"First {len(fewer):,} rows", await measured(fewer)))
        lines.append((f"{len(seeds):,} seed rows", await measured(seeds)))
    context = {
        "job": found,
        "lines": [(name, figures) for name, figures in lines if figures is not None],
        "course": _points(await asyncio.to_thread(diversity.course, texts)),
        "runs": runs,
    }
    # 286: htmx asks no more.
    status = 200 if runs else 286
    return await sync_to_async(render)(
        request, "generation/review/_diversity.html", context, status=status
    )


async def _without_vectors(texts: list[str]) -> diversity.Diversity | None:
    return await asyncio.to_thread(diversity.measure, texts)


async def _with_vectors(texts: list[str]) -> diversity.Diversity | None:
    vectors = None
    try:
        target = await in_db(default_target, Use.EMBEDDINGS)
        part = [text for text in texts[:EMBEDDED] if text.strip()]
        if len(part) > 1:
            vectors = await embed_texts(target, part, lane=Lane.INTERACTIVE)
    except (NoServer, LLMError, TextsTooLarge):
        pass  # the Vendi score is then not shown: the other figures need no server
    return await asyncio.to_thread(diversity.measure, texts, vectors)


def _by_label(spec: Spec, items: list[Item], texts: list[str]) -> list[tuple[str, list[str]]]:
    """The texts of each label, of a recipe that has one; the commonest first."""
    names = [name for name in spec.recipe.label_candidates if name in _known_labels(spec)]
    if not names:
        return []
    groups: dict[str, list[str]] = {}
    for item, text in zip(items, texts, strict=True):
        groups.setdefault(to_text(full_row(spec, item).get(names[0])), []).append(text)
    chosen = sorted(groups.items(), key=lambda group: -len(group[1]))[:LABELS_SHOWN]
    return [(label or "–", part) for label, part in chosen if len(part) >= FEWEST]


def _known_labels(spec: Spec) -> set[str]:
    """Fields with few values, all known beforehand."""
    known = {column.name for column in spec.recipe.categories if len(column.values) <= 100}
    for column in spec.recipe.written:
        if column.answer_schema is not None:
            properties = column.answer_schema["properties"]
            known |= {name for name, inner in properties.items() if "enum" in inner}
    return known


def _seed_texts(spec: Spec, count: int) -> list[str]:
    """As many of the real rows as there are made ones."""
    texts = [text for table in stored_tables(spec).values() for text in table.texts]
    return texts[:count]


def _points(values: list[float]) -> str:
    """A line for an SVG of 100 by 24, from 0 at the bottom to 1 at the top."""
    if len(values) < 2:
        return ""
    step = 100 / (len(values) - 1)
    return " ".join(f"{at * step:.1f},{23 - 22 * value:.1f}" for at, value in enumerate(values))
