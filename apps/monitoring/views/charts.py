"""Line charts of a server's measurements, and the same numbers as a table. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apps.core.templatetags.formats import milliseconds, percent
from apps.monitoring.history.measurement import Measurement, total
from apps.monitoring.line_charts import NOT_REPORTED, Chart, line_chart, number_text

Value = Callable[[Measurement], float | None]
Text = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Metric:
    title: str
    values: tuple[tuple[str, Value], ...]
    text: Text
    limit: float | None = None
    """The upper edge, where it does not depend on the values."""


def _or_not_reported(text: Text) -> Text:
    return lambda value: NOT_REPORTED if value is None else text(value)


_time, _share = _or_not_reported(milliseconds), _or_not_reported(percent)
METRICS = (
    Metric("Generated tokens/s", (("", lambda m: m.completion_per_second),), number_text),
    Metric("Prompt tokens/s", (("", lambda m: m.prompt_per_second),), number_text),
    Metric("Tokens/s of one answer", (("", lambda m: m.speed),), number_text),
    Metric(
        "Time to first token",
        (("median", lambda m: m.first_token_ms(0.5)), ("95%", lambda m: m.first_token_ms(0.95))),
        _time,
    ),
    Metric("Busy slots", (("", lambda m: m.busy_slots),), number_text),
    Metric("Waiting for a slot", (("", lambda m: m.queue),), number_text),
    Metric("Prompt cache hits", (("", lambda m: m.cache_share),), _share, limit=1.0),
    Metric("Errors", (("", lambda m: float(m.failed)),), number_text),
)

SWAP_METRICS = (Metric("Models loaded", (("", lambda m: float(m.loads)),), number_text),)
GPU_METRICS = (
    Metric("GPU memory in GiB", (("", lambda m: m.gpu_memory_gib),), number_text),
    Metric("GPU busy", (("", lambda m: m.gpu_busy_share),), _share, limit=1.0),
    Metric("GPU power in W", (("", lambda m: m.gpu_watts),), number_text),
)


def metrics(whole: Measurement) -> tuple[Metric, ...]:
    """Return what is drawn of measurements; loads and GPUs only where there are any.

    Args:
        whole: all measurements together.
    """
    swaps = SWAP_METRICS if whole.loads else ()
    return (*METRICS, *swaps, *(GPU_METRICS if whole.gpu_readings else ()))


def charts(points: Sequence[Measurement | None]) -> list[Chart]:
    """A chart for each metric.

    Args:
        points: one for each step, oldest first; None: no sample.
    """
    whole = total(points)
    return [_chart(metric, points, whole) for metric in metrics(whole)]


def _chart(metric: Metric, points: Sequence[Measurement | None], whole: Measurement) -> Chart:
    series = [
        (name, [None if point is None else value(point) for point in points])
        for name, value in metric.values
    ]
    overall = [f"{name} {metric.text(value(whole))}".strip() for name, value in metric.values]
    return line_chart(metric.title, series, ", ".join(overall), metric.text, metric.limit)


def columns(drawn: Sequence[Metric] = METRICS) -> list[str]:
    return [
        f"{metric.title} ({name})" if name else metric.title
        for metric in drawn
        for name, _ in metric.values
    ]


def cells(point: Measurement, drawn: Sequence[Metric] = METRICS) -> list[str]:
    """The values of one row of the table, in the order of `columns`."""
    return [metric.text(value(point)) for metric in drawn for _, value in metric.values]
