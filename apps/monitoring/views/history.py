"""The page with what a server did in the last hour, day, week or month. Everyone may see it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement, total
from apps.monitoring.history.store import DAY, HOUR
from apps.monitoring.views.charts import Metric, cells, charts, columns, metrics
from apps.servers.models import Server


@dataclass(frozen=True, slots=True)
class Span:
    key: str
    label: str
    seconds: int
    step: int
    """Seconds of a point of the charts."""
    row: int
    """Seconds of a row of the table."""


SPANS = (
    Span("hour", "1 hour", HOUR, 30, 300),
    Span("day", "1 day", DAY, 300, HOUR),
    Span("week", "7 days", 7 * DAY, HOUR, 6 * HOUR),
    Span("month", "30 days", 30 * DAY, 4 * HOUR, DAY),
)
DEFAULT = SPANS[1]


@require_safe
def history(request: HttpRequest, pk: int) -> HttpResponse:
    server = get_object_or_404(Server, pk=pk)
    now = int(time.time()) + 1
    span = next((span for span in SPANS if span.key == request.GET.get("span")), DEFAULT)
    models = store.models_of(server, since=now - SPANS[-1].seconds)
    model = request.GET.get("model", "")
    model = model if model in models else ""
    first = store.start_of(now - span.seconds, span.step)
    points = store.read(server, since=first, until=now, step=span.step, model=model)
    whole = total(points)
    context = {
        "server": server,
        "spans": SPANS,
        "span": span,
        "models": models,
        "model": model,
        "start": _moment(first),
        "end": _moment(now),
        "zone": timezone.get_current_timezone_name(),
        "has_samples": any(points),
        "away": whole.away / whole.readings if whole.readings else None,
        "has_gpus": bool(whole.gpu_readings),
        "charts": charts(points),
        "columns": columns(metrics(whole)),
        "rows": _rows(points, first, span, metrics(whole)),
    }
    return render(request, "monitoring/history.html", context)


def _moment(seconds: float) -> datetime:
    return timezone.localtime(datetime.fromtimestamp(seconds, UTC))


def _rows(
    points: Sequence[Measurement | None], first: int, span: Span, drawn: Sequence[Metric]
) -> list[tuple[datetime, list[str]]]:
    """Time and cells of each row, the newest first; times without samples have none."""
    found: dict[int, Measurement] = {}
    for place, point in enumerate(points):
        if point is not None:
            start = store.start_of(first + place * span.step, span.row)
            found[start] = found.get(start, Measurement()) + point
    return [(_moment(start), cells(found[start], drawn)) for start in sorted(found, reverse=True)]
