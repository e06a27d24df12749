"""One text at a time, labelled with the keyboard."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods

from apps.datasets import services
from apps.datasets.models import Dataset, Queue, Revision
from apps.datasets.rows import queues
from apps.datasets.rows.queues import Card
from apps.datasets.views.shared import is_fragment, mine, numbers, who

KEYS = 9
Number = int | None


@require_http_methods(["GET", "HEAD", "POST"])
def label(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the next row to label: of a queue, or of the unlabelled ones.

    POST does one `action` - "label", "keep", "skip", "undo" - and shows the row after it.
    """
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
    skipped = after if queue is None and request.POST.get("action") == "skip" else None
    context = _context(dataset, queue, card, skipped=skipped) | {"error": error}
    template = (
        "datasets/rows/_label_card.html" if is_fragment(request) else "datasets/rows/label.html"
    )
    return render(request, template, context, status=422 if error else 200)


def _act(request: HttpRequest, dataset: Dataset, queue: Queue | None, index: Number) -> Number:
    """Perform the action; return the row to show if it is not simply the next one.

    Raises:
        ValueError: it cannot be done; the message says why.
    """
    action = request.POST.get("action", "")
    revision: Revision | None = None
    if action == "undo":
        return _undo(request, dataset, queue)
    if index is None:
        raise ValueError("Choose a row.")
    if action == "label":
        wanted = request.POST.get("label", "")
        if not wanted.strip():
            raise ValueError("Choose a label, or skip the row.")
        if queue is not None and not queues.may_relabel(queue, index):
            raise ValueError("This row is a test row or not in this queue. It was not changed.")
        revision = services.relabel_rows(dataset, [index], wanted, by=who(request))
    elif action not in {"keep", "skip"}:
        raise ValueError("Choose a label, keep the current one or skip the row.")
    if queue is not None:
        queues.mark_seen(queue, index, revision=revision)
    return None


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
    """Return the last change if it labelled a single row.

    Undo here must not revert a split, for example.
    """
    last = services.last_undoable(dataset)
    if last is None or last.rows != 1:
        return None
    change = last.changes.get()
    if change.before is None or change.after is None or set(change.after) != {"label"}:
        return None
    return last


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
    labels = dataset.labels
    first = [label for label in card.suggested if label] if card else []
    order = list(dict.fromkeys([*first, *labels]))
    return {
        "dataset": dataset,
        "queue": queue,
        "card": card,
        "choices": [
            {"label": label, "key": str(place) if place <= KEYS else ""}
            for place, label in enumerate(order, start=1)
        ],
        "skipped": skipped,
        "undoable": skipped is not None or _may_undo(dataset, queue),
    }


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
