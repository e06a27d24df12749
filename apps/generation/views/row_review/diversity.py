"""Diversity of the accepted rows, by label and next to the seed rows."""

import asyncio

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import aget_object_or_404, render
from django.views.decorators.http import require_safe

from apps.batch.models import ACTIVE, Item
from apps.embeddings.errors import TextsTooLarge
from apps.embeddings.services import embed_texts
from apps.generation.exports.row_fields import full_row
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.spec import Spec
from apps.generation.review import diversity, similar_rows
from apps.generation.rows import answer_check
from apps.generation.rows.duplicate_filter import stored_tables
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.servers.models import Use
from apps.servers.services import NoServer, default_target

LABELS_SHOWN = 12
FEWEST = 5
EMBEDDED = 300


@require_safe
async def show_diversity(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the diversity of the accepted rows, by label and next to the seed rows.

    Polled while the job runs; then without the figures that need embeddings.
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
    """Return up to `count` seed rows."""
    texts = [text for table in stored_tables(spec).values() for text in table.texts]
    return texts[:count]


def _points(values: list[float]) -> str:
    """A line for an SVG of 100 by 24, from 0 at the bottom to 1 at the top."""
    if len(values) < 2:
        return ""
    step = 100 / (len(values) - 1)
    return " ".join(f"{at * step:.1f},{23 - 22 * value:.1f}" for at, value in enumerate(values))
