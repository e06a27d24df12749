"""Several rows accepted, rejected or exported at once."""

from dataclasses import dataclass, field

from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Item, ItemStatus
from apps.generation.exports.downloads import export_response
from apps.generation.exports.formats import Format
from apps.generation.models import Job
from apps.generation.review.undo import SALT, undo_review, undo_token
from apps.generation.views.job_page.rows import row_table
from apps.generation.views.jobs import jobs_of
from apps.generation.views.row_review.review import decide

MAX_ROWS = 200


@dataclass(slots=True)
class _Result:
    """What became of the chosen rows."""

    changed: int = 0
    undo: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@require_POST
def judge_rows(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept or reject the chosen rows, or undo that; the table comes back."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    action = request.POST.get("action", "")
    if action == "undo":
        result, verb = _undo(found, request.POST.getlist("before")[:MAX_ROWS]), "restored"
    else:
        items = batches.rows_of(found.batch_id).filter(index__in=_indices(request.POST))
        result, verb = _judge(found, list(items), action), f"{action}ed"
    if not request.headers.get("HX-Request"):
        return redirect(f"{reverse('generation:rows', args=[pk])}?{request.GET.urlencode()}")
    rows = f"{result.changed:,} row{'s' * (result.changed != 1)}"
    context = {
        **row_table(request, found),
        "notice": f"{rows} {verb}.",
        "undo": result.undo,
        "problems": result.problems,
    }
    return render(request, "generation/rows/_rows.html", context)


def _judge(found: Job, items: list[Item], action: str) -> _Result:
    """Judge each row like a person would; those that this would not change are left alone."""
    result = _Result()
    wrong = {"accept": (), "reject": (ItemStatus.REJECTED,)}.get(action, ())
    for item in items:
        if item.status in wrong or item.status not in (ItemStatus.ACCEPTED, ItemStatus.REJECTED):
            continue
        before = undo_token(item)
        problem = decide(found, item, QueryDict(f"action={action}"))
        if problem:
            result.problems.append(f"Row {item.index + 1:,}: {problem}")
        else:
            result.changed += 1
            result.undo.append(before)
    result.problems = list(dict.fromkeys(result.problems))[:3]
    return result


def _undo(found: Job, tokens: list[str]) -> _Result:
    result = _Result()
    for token in tokens:
        try:
            key = signing.loads(token, salt=SALT)[0]
        except signing.BadSignature:
            continue
        item = batches.rows_of(found.batch_id).filter(pk=key).first()
        if item is None:
            continue
        try:
            undo_review(item, token, found.spec)
        except WrongState as error:
            result.problems.append(f"Row {item.index + 1:,}: {error}")
        else:
            result.changed += 1
    return result


@require_POST
def export_rows(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download the chosen rows that are accepted, as JSONL."""
    found = get_object_or_404(jobs_of(request), pk=pk)
    return export_response(found, Format.JSONL, numbered=True, indices=_indices(request.POST))


def _indices(data: QueryDict) -> list[int]:
    given = data.getlist("index")[:MAX_ROWS]
    return [int(text) for text in given if text.isascii() and text.isdecimal() and len(text) < 10]
