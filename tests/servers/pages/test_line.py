"""The line of a server in the list."""

from typing import Any

import pytest

from apps.llm.permits import UsageBucket
from apps.servers.models import Kind, Server, State
from apps.servers.pages.line import HEIGHT, WIDTH, Line, Total, build_line, spark_points
from apps.servers.pages.slots.slot_view import Occupant, SlotView

TWO = [{"id": "chat-14b", "state": "loaded"}, {"id": "judge-4b", "state": "unloaded"}]


def line(
    kind: Kind = Kind.LLAMA_SERVER,
    *,
    state: State = State.READY,
    models: list[dict[str, Any]] | None = None,
    views: int = 4,
    **options: Any,
) -> Line:
    server = Server(name="Desk", kind=kind, state=state)
    server.stored_facts = {"models": models if models is not None else [{"id": "qwen"}]}
    given = {
        "reachable": state == State.READY,
        "uses": [],
        "views": [SlotView(0, Occupant.JOB), *(SlotView(n) for n in range(1, views))],
        "reports_slots": True,
        "buckets": [],
        "next_check": None,
        "waiting": 0,
    }
    return build_line(server, **(given | options))


def test_line_counts_busy_slots_and_draws_a_square_for_each() -> None:
    shown = line()
    assert (shown.busy, shown.slots, len(shown.squares)) == (1, 4, 4)


def test_many_slots_are_a_number_alone() -> None:
    shown = line(views=64)
    assert (shown.busy, shown.slots, shown.squares) == (1, 64, [])


def test_slots_that_are_not_reported_are_not_counted() -> None:
    shown = line(Kind.LITELLM, reports_slots=False)
    assert (shown.slots, shown.squares) == (None, [])
    assert Total.of([shown, line(waiting=2)]) == Total(busy=1, slots=4, waiting=2)


@pytest.mark.parametrize(
    ("kind", "models", "model", "note"),
    [
        (Kind.ROUTER, TWO, "chat-14b", "+ 1 more, loads on demand"),
        (Kind.ROUTER, [TWO[1]], "judge-4b", "not loaded"),
        (Kind.LITELLM, TWO, "2 models", "chat-14b and others"),
        (Kind.OPENAI, [], "No models", ""),
    ],
)
def test_line_names_the_model_that_answers(
    kind: Kind, models: list[dict[str, Any]], model: str, note: str
) -> None:
    shown = line(kind, models=models)
    assert (shown.model, shown.model_note) == (model, note)


def test_line_says_what_a_server_is_the_default_for() -> None:
    assert line(uses=["chat", "generation"]).role == "Default for chat and jobs"
    assert line().role == "llama-server"
    assert sorted([line(), line(uses=["chat"])], key=lambda one: one.rank)[0].role != "llama-server"


def test_line_says_the_kind_of_a_server_once() -> None:
    away = line(Kind.OPENAI, state=State.UNREACHABLE, models=[])
    assert (away.role, away.model, away.model_note) == (
        "OpenAI-compatible",
        "Model not reported",
        "",
    )
    assert line(Kind.OPENAI, models=[], uses=["chat"]).model_note == "OpenAI-compatible"


def test_line_of_an_offline_server_says_when_it_is_asked_again_and_no_rate() -> None:
    shown = line(state=State.UNREACHABLE, next_check=20.0)
    assert (shown.state_note, shown.rate) == ("Next check in 20 s", None)
    assert line(next_check=20.0).state_note == ""


def test_rate_is_of_the_last_minute() -> None:
    quiet, busy = UsageBucket(start=0, prompt=9_000), UsageBucket(start=0, completion=600)
    assert line(buckets=[quiet] * 84 + [busy] * 6).rate == 60


def test_spark_points_stay_inside_the_box_and_an_idle_server_is_a_flat_line() -> None:
    points = [tuple(map(float, pair.split(","))) for pair in spark_points([0, 500, 20]).split()]
    assert [x for x, _ in points] == [0, WIDTH / 2, WIDTH]
    assert all(0 <= y <= HEIGHT for _, y in points)
    assert min(y for _, y in points) == points[1][1]
    assert len({pair.split(",")[1] for pair in spark_points([0.0] * 90).split()}) == 1
