"""The page with what programs used, and the same as CSV."""

import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from apps.core.api import owner
from apps.core.templatetags.formats import duration
from apps.files import CONTENT_TYPES, CsvWriter
from apps.gateway.models import Usage
from apps.gateway.usage import summary
from apps.gateway.usage.store import store_usage
from apps.gateway.usage.summary import Figures, UsageFilter
from apps.monitoring.line_charts import NOT_REPORTED, Chart, line_chart, number_text

logger = logging.getLogger(__name__)

SPANS = {"week": ("7 days", 7), "month": ("30 days", 30), "year": ("12 months", 365)}
DEFAULT_SPAN = "month"
GROUPS = {"day": "Day", "key": "Key", "person": "Person", "model": "Model"}
CSV_COLUMNS = (
    *("day", "person", "key", "model", "requests", "failed", "cancelled"),
    *("tokens_in", "tokens_cached", "tokens_out", "requests_without_tokens", "average_wait_s"),
    "cost",
)
CSV_ROWS = 1000


@require_safe
def usage(request: HttpRequest) -> HttpResponse:
    try:
        store_usage()  # what the last half minute brought
    except RedisError as error:
        logger.warning("The usage is not the latest, Redis does not answer: %s", error)
    user = owner(request)
    span, chosen = read_filter(request.GET)
    by = request.GET.get("by", "")
    by = by if by in GROUPS and (user.is_staff or by != "person") else "day"
    rows = summary.filtered(user, chosen)
    groups, total = summary.grouped(rows, by), summary.total(rows)
    days = list(summary.by_day(rows, chosen.first, chosen.last))
    context = {
        "spans": [(key, label) for key, (label, _) in SPANS.items()],
        "span": span,
        "chosen": chosen,
        "start": chosen.first,
        "end": chosen.last,
        "group": by,
        "groups": [
            (key, label) for key, label in GROUPS.items() if user.is_staff or key != "person"
        ],
        "group_label": GROUPS[by],
        "rows": [(_name(by, names), figures, _cost(figures)) for names, figures in groups],
        "currency": settings.CURRENCY if settings.TOKEN_PRICES else "",
        "total_cost": _cost(total),
        "is_cut": by != "day" and len(groups) == summary.MAX_SHOWN,
        "max_shown": summary.MAX_SHOWN,
        "total": total,
        "charts": _charts(days, total),
        "query": request.GET.urlencode(),
        **_choices(user, chosen),
    }
    return render(request, "gateway/usage.html", context)


@require_safe
def usage_csv(request: HttpRequest) -> StreamingHttpResponse:
    _, chosen = read_filter(request.GET)
    rows = summary.filtered(owner(request), chosen).select_related("user")
    return StreamingHttpResponse(
        _csv(rows.order_by("day", "user__username", "key_name", "model")),
        headers={
            "Content-Type": CONTENT_TYPES["csv"],
            "Content-Disposition": f'attachment; filename="usage-{chosen.first}-{chosen.last}.csv"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def read_filter(query: Mapping[str, str]) -> tuple[str, UsageFilter]:
    """Return the name of the span and what is chosen; what is no choice is left out."""
    span = query.get("span", "")
    span = span if span in SPANS else DEFAULT_SPAN
    today = timezone.localdate()
    return span, UsageFilter(
        today - timedelta(days=SPANS[span][1] - 1),
        today,
        key=_number(query.get("key", "")),
        model=query.get("model") or None,
        person=_number(query.get("person", "")),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _choices(user: User, chosen: UsageFilter) -> dict[str, Any]:
    """Return what can be chosen: whatever was used in this time."""
    rows = summary.visible_to(user).filter(day__gte=chosen.first)
    keys = rows.order_by("key_name", "key_id").values_list("key_id", "key_name")
    models = rows.exclude(model="").order_by("model").values_list("model", flat=True)
    people = rows.order_by("user__username").values_list("user_id", "user__username")
    return {
        "keys": keys.distinct()[: summary.MAX_SHOWN],
        "models": models.distinct()[: summary.MAX_SHOWN],
        "people": people.distinct()[: summary.MAX_SHOWN] if user.is_staff else [],
    }


def _name(by: str, names: tuple[Any, ...]) -> Any:
    if by == "key":
        return f"{names[1]} · {names[2]}"
    return names[0] or "No model found"


def _cost(figures: Figures) -> float | None:
    return figures.cost(settings.TOKEN_PRICES)


def _charts(days: list[Figures], whole: Figures) -> list[Chart]:
    tokens = [
        ("in", [day.prompt for day in days]),
        ("cached", [day.cached for day in days]),
        ("out", [day.completion for day in days]),
    ]
    totals = (("in", whole.prompt), ("cached", whole.cached), ("out", whole.completion))
    said = ", ".join(f"{name} {number_text(value)}" for name, value in totals)
    requests = [("", [float(day.requests) for day in days])]
    waits = [("", [day.waited for day in days])]
    return [
        line_chart("Tokens by day", tokens, said, number_text),
        line_chart("Requests by day", requests, number_text(whole.requests), number_text),
        line_chart("Average wait for a slot by day", waits, _seconds(whole.waited), _seconds),
    ]


def _seconds(value: float | None) -> str:
    return NOT_REPORTED if value is None else duration(value)


def _csv(rows: QuerySet[Usage]) -> Iterator[bytes]:
    writer = CsvWriter(CSV_COLUMNS, plain_numbers=True)
    yield writer.header()
    for row in rows.iterator(CSV_ROWS):
        figures = Figures.from_sums(vars(row))
        values = (
            *(row.day.isoformat(), row.user.get_username(), row.key_name, row.model),
            *(figures.requests, figures.failed, figures.cancelled),
            *(figures.prompt, figures.cached, figures.completion, figures.unreported),
            None if figures.waited is None else round(figures.waited, 3),
            None if (cost := _cost(figures)) is None else round(cost, 6),
        )
        yield writer.encode([dict(zip(CSV_COLUMNS, values, strict=True))])
