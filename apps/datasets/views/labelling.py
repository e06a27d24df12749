"""One text at a time, labelled with the keyboard."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from apps.datasets import hooks, services
from apps.datasets.models import Change, Dataset, Queue, Revision
from apps.datasets.rows import queues
from apps.datasets.rows.queues import Card
from apps.datasets.views.shared import is_fragment, mine, numbers, who
from apps.runtime.async_db import in_db

BARS = 5
LABELS_SHOWN = 1_000
RECENT = 20  # changes that are looked at for labels used recently
Number = int | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One of the likeliest labels; `share` is None where no classifier gave it."""

    label: str
    share: float | None


@require_http_methods(["GET", "HEAD", "POST"])
async def label(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the next row to label: of a queue, or of the unlabelled ones.

    POST gives a label (`give`) or does one `action` - "label", "keep", "skip", "none", "delete",
    "undo" - and shows the row after it.
    """
    dataset, context, status = await in_db(_answer, request, pk)
    card: Card | None = context["card"]
    if card is not None:
        guesses = await hooks.guess_labels(dataset, card.example.text)
        context["guesses_by"] = guesses.by if guesses else ""
        context["bars"] = await in_db(_bars, dataset, card, guesses)
    template = (
        "datasets/rows/_label_card.html" if is_fragment(request) else "datasets/rows/label.html"
    )
    return await in_db(render, request, template, context, status=status)


def _answer(request: HttpRequest, pk: int) -> tuple[Dataset, dict[str, Any], int]:
    """Do what was asked; return the dataset, the context of the next row and the status."""
    dataset = mine(request, pk)
    queue = _queue(request, dataset)
    error = ""
    at: Number = _number(request.GET.get("at"))
    after: Number = None
    if request.method == "POST":
        index = _number(request.POST.get("index"))
        try:
            at = _act(request, dataset, queue, index)
            after = index
        except ValueError as problem:
            error, at = str(problem), index
    card = _card(dataset, queue, at=at, after=after)
    passed = queue is None and request.POST.get("action") in {"skip", "none"}
    context = _context(dataset, queue, card, skipped=after if passed else None)
    return dataset, context | {"error": error}, 422 if error else 200


def _bars(dataset: Dataset, card: Card, guesses: hooks.Guesses | None) -> list[Bar]:
    """Return the likeliest labels; without guesses, suggested, recent and frequent ones."""
    if guesses is not None:
        return [Bar(label, share) for label, share in guesses.labels[:BARS]]
    recent = Change.objects.filter(
        revision__dataset=dataset, revision__rows=1, revision__undone=False
    ).order_by("-revision__number")
    used = [str((change.after or {}).get("label", "")) for change in recent[:RECENT]]
    known = [label for label in (*card.suggested, *used) if label in dataset.label_counts]
    order = dict.fromkeys([*known, *dataset.labels[: BARS + 1]])
    return [Bar(label, None) for label in order if label][:BARS]


def _act(request: HttpRequest, dataset: Dataset, queue: Queue | None, index: Number) -> Number:
    """Perform the action; return the row to show if it is not simply the next one.

    Raises:
        ValueError: it cannot be done; the message says why.
    """
    wanted = request.POST.get("give") or request.POST.get("label", "")
    action = "label" if "give" in request.POST else request.POST.get("action", "")
    revision: Revision | None = None
    if action == "undo":
        return _undo(request, dataset, queue)
    if index is None:
        raise ValueError("Choose a row.")
    if action == "label":
        if not wanted.strip():
            raise ValueError("Choose a label, or skip the row.")
        _check_row(queue, index)
        revision = services.relabel_rows(dataset, [index], wanted, by=who(request))
    elif action == "none":
        _check_row(queue, index)
        revision = services.relabel_rows(dataset, [index], "", by=who(request))
    elif action == "delete":
        _check_row(queue, index)
        revision = services.delete_rows(dataset, [index], by=who(request))
    elif action not in {"keep", "skip"}:
        raise ValueError("Choose a label, keep the current one or skip the row.")
    if queue is not None:
        queues.mark_seen(queue, index, revision=revision)
    return None


def _check_row(queue: Queue | None, index: int) -> None:
    """Raises:
    ValueError: the queue may not change this row.
    """
    if queue is not None and not queues.may_relabel(queue, index):
        raise ValueError("This row is a test row or not in this queue. It was not changed.")


def _undo(request: HttpRequest, dataset: Dataset, queue: Queue | None) -> Number:
    """Undo the last action on this page; return its row."""
    skipped = _number(request.POST.get("skipped"))
    if queue is not None:
        row = queues.step_back(queue, by=who(request))
    elif skipped is not None:
        return skipped  # nothing was changed: it is only shown again
    else:
        given = _last_given(dataset)
        row = None if given is None else given.changes.get().index
        if given is not None:
            services.undo(dataset, by=who(request))
    if row is None:
        raise ValueError("Nothing to undo here. Undo other changes on the dataset page.")
    return row


def _last_given(dataset: Dataset) -> Revision | None:
    """Return the last change if it labelled or deleted a single row.

    Undo here must not revert a split, for example.
    """
    last = services.last_undoable(dataset)
    if last is None or last.rows != 1:
        return None
    change = last.changes.get()
    if change.before is None:  # it was added
        return None
    return last if change.after is None or set(change.after) == {"label"} else None


def _card(dataset: Dataset, queue: Queue | None, *, at: Number, after: Number) -> Card | None:
    if queue is not None:
        shown = queues.next_in_queue(queue, at=at)
        return shown or (queues.next_in_queue(queue) if at is not None else None)
    if at is not None:
        return queues.next_unlabelled(dataset, at=at)
    return queues.next_unlabelled(dataset, after=-1 if after is None else after)


def _context(
    dataset: Dataset, queue: Queue | None, card: Card | None, *, skipped: Number
) -> dict[str, Any]:
    counts = dataset.label_counts
    return {
        "dataset": dataset,
        "queue": queue,
        "card": card,
        "labels": [(name, counts[name]) for name in dataset.labels if name][:LABELS_SHOWN],
        "skipped": skipped,
        "undoable": skipped is not None or _may_undo(dataset, queue),
        "last": _last_words(dataset, skipped),
    }


def _last_words(dataset: Dataset, skipped: Number) -> str:
    """Return what Undo would take back, as a sentence."""
    if skipped is not None:
        return f"Row {skipped + 1:,} skipped"
    last = _last_given(dataset)
    return last.what if last else ""


def _may_undo(dataset: Dataset, queue: Queue | None) -> bool:
    return bool(_last_given(dataset) if queue is None else queues.last_seen(queue))


def _queue(request: HttpRequest, dataset: Dataset) -> Queue | None:
    given = _number(request.GET.get("queue"))
    if given is None:
        return None
    queue = get_object_or_404(dataset.queues.all(), pk=given)
    queue.dataset = dataset  # one object: what is done to it is seen here
    return queue


def _number(value: str | None) -> Number:
    return next(iter(numbers([value or ""])), None)
