"""Diversity of the accepted rows, by label and next to the seed rows."""

import asyncio
import math

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
from apps.generation.review import similar_rows
from apps.generation.review.diversity import Diversity, TextSample
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
MOST_CHARACTERS = 400_000


@require_safe
async def show_diversity(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the diversity of the accepted rows, by label and next to the seed rows.

    Polled while the job runs; then without the figures that need embeddings.
    """
    owner = await request.auser()
    jobs = Job.objects.owned_by(owner).select_related("batch")
    found = await aget_object_or_404(jobs, pk=pk)
    runs = found.batch.status in ACTIVE
    items, among = await in_db(_drawn_rows, found)
    sample = await asyncio.to_thread(TextSample, [_text_of(found.spec, item) for item in items])
    embeds = not runs or bool(request.GET.get("all"))
    context = {
        "job": found,
        "lines": await _lines(found.spec, items, sample, embeds),
        "course": _points(await asyncio.to_thread(sample.course)),
        "runs": runs,
        "drawn": len(items),
        "among": among,
    }
    # 286: htmx asks no more.
    status = 200 if runs else 286
    return await sync_to_async(render)(
        request, "generation/review/_diversity.html", context, status=status
    )


def _drawn_rows(job: Job) -> tuple[list[Item], int]:
    """Draw accepted rows with text by chance, and count all of them.

    Fewer are drawn where they are long: the words of a page's worth of books take too long.
    """
    items, count = similar_rows.sample_rows(job), similar_rows.sampled_from(job).count()
    characters = sum(len(_text_of(job.spec, item)) for item in items)
    return items[:: 1 + characters // MOST_CHARACTERS], count


def _text_of(spec: Spec, item: Item) -> str:
    return "\n".join(answer_check.free_texts_of(spec.recipe, item.current_output))


async def _lines(
    spec: Spec, items: list[Item], sample: TextSample, embeds: bool
) -> list[tuple[str, Diversity]]:
    """The figures of all rows, of each label, and of the seed rows beside as many rows."""
    measured = _with_vectors if embeds else _without_vectors
    lines = [("all rows", await measured(sample, None))]
    for label, part in _by_label(spec, items):
        lines.append((label, await _without_vectors(sample, part)))
    count = len(items)
    if seeds := await in_db(_seed_texts, spec, count):
        # The figures depend on how many texts there are: as many of each are compared.
        if len(seeds) < count:
            fewer = [at * count // len(seeds) for at in range(len(seeds))]
            lines.append((f"First {len(fewer):,} rows", await measured(sample, fewer)))
        seed_sample = await asyncio.to_thread(TextSample, seeds)
        lines.append((f"{len(seeds):,} seed rows", await measured(seed_sample, None)))
    return [(name, figures) for name, figures in lines if figures is not None]


async def _without_vectors(sample: TextSample, part: list[int] | None) -> Diversity | None:
    return await asyncio.to_thread(sample.measure, part)


async def _with_vectors(sample: TextSample, part: list[int] | None) -> Diversity | None:
    vectors = None
    texts = sample.texts if part is None else [sample.texts[at] for at in part]
    try:
        target = await in_db(default_target, Use.EMBEDDINGS)
        step = max(1, math.ceil(len(texts) / EMBEDDED))
        if len(chosen := [text for text in texts[::step] if text.strip()]) > 1:
            vectors = await embed_texts(target, chosen, lane=Lane.INTERACTIVE)
    except (NoServer, LLMError, TextsTooLarge):
        pass  # the Vendi score is then not shown: the other figures need no server
    return await asyncio.to_thread(sample.measure, part, vectors)


def _by_label(spec: Spec, items: list[Item]) -> list[tuple[str, list[int]]]:
    """Where the rows of each label are, of a recipe that has one; the commonest first."""
    names = [name for name in spec.recipe.label_candidates if name in _known_labels(spec)]
    if not names:
        return []
    groups: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        groups.setdefault(to_text(full_row(spec, item).get(names[0])), []).append(at)
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
