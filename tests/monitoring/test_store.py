"""Samples in the database: read back in any step they are the sums of what was added."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from apps.monitoring.history import store
from apps.monitoring.history.measurement import Measurement, total
from apps.servers.models import Server

HOUR = 3600
NOON = 1_800_000_000 // HOUR * HOUR


@pytest.fixture
def server(db: None) -> Server:
    return Server.objects.create(name="GPU", base_url="http://gpu/v1")


def add(server: Server, moment: float, *, model: str = "", **amounts: Any) -> None:
    store.add(server, {model: Measurement(**amounts)}, moment)


def requests_of(points: Sequence[Measurement | None]) -> list[int | None]:
    return [None if point is None else point.requests for point in points]


@pytest.mark.parametrize("step", [30, 60, 300, HOUR])
@pytest.mark.parametrize("seed", range(3))
def test_every_step_has_all_that_was_added(server: Server, step: int, seed: int) -> None:
    numbers = random.Random(seed)
    moments = [NOON + numbers.uniform(0, HOUR - 1) for _ in range(20)]
    for moment in moments:
        add(server, moment, requests=1, first_tokens=[0, 1])
    points = list(store.read(server, since=NOON, until=NOON + HOUR, step=step))
    assert len(points) == HOUR // step
    assert (total(points).requests, list(total(points).first_tokens)) == (20, [0, 20])
    for number, point in enumerate(points):
        start = NOON + number * step
        inside = sum(start <= moment < start + step for moment in moments)
        assert (point.requests if point else 0) == inside


def test_no_sample_is_not_a_sample_of_nothing(server: Server) -> None:
    add(server, NOON + 30, readings=1)
    points = list(store.read(server, since=NOON, until=NOON + 90, step=30))
    assert requests_of(points) == [None, 0, None]


def test_a_time_that_begins_within_a_step_begins_with_the_step(server: Server) -> None:
    add(server, NOON, requests=2)
    points = list(store.read(server, since=NOON + 299, until=NOON + 301, step=300))
    assert requests_of(points) == [2, None]


def test_models_and_servers_are_apart(server: Server) -> None:
    other = Server.objects.create(name="Other", base_url="http://other/v1")
    add(server, NOON, model="qwen", requests=1)
    add(other, NOON, model="qwen", requests=7)
    read = list(store.read(server, since=NOON, until=NOON + 30, step=30, model="qwen"))
    assert requests_of(read) == [1]
    assert list(store.read(server, since=NOON, until=NOON + 30, step=30)) == [None]
    assert store.models_of(server, since=NOON) == ["qwen"]
    assert store.models_of(server, since=NOON + HOUR) == []
