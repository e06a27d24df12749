"""The tables of a sweep, and their Markdown (pure)."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from apps.tuning.sweep.figures import Point
from apps.tuning.sweep.results import ChatTurns, SweepResults, Turn, is_alike

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def make_tables(results: SweepResults) -> list[Table]:
    """Return the tables of what was measured; none of what was not."""
    tables = []
    if results.probed:
        tables.append(_shares("Rows in parallel", "rows", "tokens/s", results.probed))
    if results.points:
        tables.append(_sequences(results))
    if results.chat is not None:
        tables.append(_chat(results.chat))
    tables += _loads(results.points)
    if results.ubatches:
        tables.append(_shares("Micro-batch (-ub)", "tokens", "prompt tokens/s", results.ubatches))
    return tables


def describe(results: SweepResults) -> list[str]:
    """Return what was measured, and what it says, as sentences."""
    context = f"{results.context:,} tokens" if results.context else "context not reported"
    lines = [
        f"{results.model}, {results.slots} slots of {context}, "
        f"build {results.build or 'not reported'}."
    ]
    if results.seconds:
        paused_seconds = round(results.paused_seconds)
        paused = f", paused for {paused_seconds} s" if paused_seconds else ""
        lines.append(f"Measured for {results.seconds:.0f} s{paused}.")
    if results.flags:
        lines.append(f"Flags: {results.flags}")
    if results.best_width is not None:
        lines.append(
            f"Best number of rows in parallel: {results.best_width} "
            f"({results.probed[results.best_width]:.1f} tokens/s)."
        )
    if results.mixed_width is not None:
        lines.append(f"While people use the server too: {results.mixed_width}.")
    if results.knee is not None:
        lines.append(f"More than {results.knee} sequences at the same time bring little.")
    return lines + list(results.notes)


def to_markdown(results: SweepResults) -> str:
    """Return everything as Markdown."""
    parts = [
        "\n\n".join([f"Started {results.started}.", *describe(results)]),
        *map(table_markdown, make_tables(results)),
    ]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    lines = [table.head, ["---", *["---:"] * (len(table.head) - 1)], *table.rows]
    cells = ("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)
    return f"### {table.title}\n\n" + "\n".join(cells)


def table_text(table: Table) -> str:
    """Return a table for a terminal."""
    lines = [table.head, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    text = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *(f"  {line}" for line in text)])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _shares(title: str, name: str, rate: str, rates: Mapping[int, float]) -> Table:
    """Rates by a number, and each as a share of the best."""
    best = max(rates.values())
    rows = [[f"{at:,}", _rate(value), f"{value / best:.0%}"] for at, value in sorted(rates.items())]
    return Table(title, [name, rate, "of the best"], rows)


def _sequences(results: SweepResults) -> Table:
    first = results.points[0].load
    points = [point for point in results.points if is_alike(point.load, first)]
    alone = points[0].generation_rate
    rows = [
        [
            str(point.load.width),
            _rate(point.generation_rate),
            _rate(point.per_sequence),
            UNKNOWN
            if not alone or point.generation_rate is None
            else f"{point.generation_rate / alone:.2f}x",
        ]
        for point in points
    ]
    title = f"Sequences at the same time (prompts of {first.prompt_tokens:,} tokens)"
    return Table(title, ["sequences", "total tokens/s", "tokens/s each", "speed-up"], rows)


def _chat(chat: ChatTurns) -> Table:
    def line(name: str, turns: Sequence[Turn], value: Callable[[Turn], float]) -> list[str]:
        values = [value(turn) for turn in turns]
        every = [*values, statistics.fmean(values), statistics.median(values)]
        return [name, *map(_ms, every)]

    def gain(name: str, value: Callable[[Turn], float]) -> list[str]:
        without, with_cache = (
            [value(turn) for turn in turns] for turns in (chat.uncached, chat.cached)
        )
        pairs = [
            *zip(without, with_cache, strict=True),
            (statistics.fmean(without), statistics.fmean(with_cache)),
            (statistics.median(without), statistics.median(with_cache)),
        ]
        return [name, *(f"{one / other:.2f}x" for one, other in pairs)]

    def first(turn: Turn) -> float:
        return turn.first_token

    def whole(turn: Turn) -> float:
        return turn.whole

    rows = [
        line("first token, no cache", chat.uncached, first),
        line("first token, prompt cache", chat.cached, first),
        gain("speed-up", first),
        line("whole answer, no cache", chat.uncached, whole),
        line("whole answer, prompt cache", chat.cached, whole),
        gain("speed-up", whole),
    ]
    tokens = f"{chat.prompt_tokens:,} tokens" if chat.prompt_tokens else "tokens not reported"
    turns = [f"turn {number + 1}" for number in range(len(chat.cached))]
    title = f"Chat of {len(turns)} turns (last prompt: {tokens})"
    return Table(title, ["", *turns, "average", "median"], rows)


def _loads(points: Iterable[Point]) -> list[Table]:
    tables: list[Table] = []
    known = list(points)
    kinds = {
        (point.load.prompt_tokens, point.load.is_cached, point.load.is_json): point.load
        for point in known
    }
    for (tokens, is_cached, is_json), kind in kinds.items():
        rows = [_load_row(point) for point in known if is_alike(point.load, kind)]
        names = ["cached" if is_cached else "uncached", *["JSON schema"] * is_json]
        title = f"Prompts of {tokens:,} tokens, {', '.join(names)}"
        tables.append(Table(title, LOAD_HEAD, rows))
    return tables


LOAD_HEAD = (
    "sequences",
    "prompt tokens/s",
    "total tokens/s",
    "tokens/s each",
    "first token p50",
    "first token p95",
    "cached",
)


def _load_row(point: Point) -> list[str]:
    return [
        str(point.load.width),
        _rate(point.prompt_rate),
        _rate(point.generation_rate),
        _rate(point.per_sequence),
        _ms(point.first_token_p50),
        _ms(point.first_token_p95),
        UNKNOWN if point.cached_share is None else f"{point.cached_share:.0%}",
    ]


def _rate(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
