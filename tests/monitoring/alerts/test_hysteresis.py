"""How many checks begin and end an alert."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.monitoring.alerts.hysteresis import LONGEST_GAP, Run
from apps.monitoring.models import AlertKind

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
STEP = timedelta(seconds=30)


def run_of(checks: int) -> Run:
    run = Run(NOON, NOON)
    for number in range(1, checks):
        run = run.extended(NOON + number * STEP)
    return run


@pytest.mark.parametrize(
    ("kind", "is_open", "checks"),
    [
        (AlertKind.GONE, False, 3),
        (AlertKind.GONE, True, 4),
        (AlertKind.SLOWER, False, 6),
        (AlertKind.CACHE, True, 20),
    ],
)
def test_an_alert_changes_after_enough_checks_in_a_row(
    kind: AlertKind, is_open: bool, checks: int
) -> None:
    assert not run_of(checks - 1).is_enough(kind, is_open=is_open)
    assert run_of(checks).is_enough(kind, is_open=is_open)


def test_a_run_remembers_its_first_check() -> None:
    assert run_of(5) == Run(NOON, NOON + 4 * STEP, 5)


def test_a_gap_begins_a_new_run() -> None:
    later = NOON + LONGEST_GAP
    assert run_of(1).extended(later).checks == 2
    assert run_of(1).extended(later + STEP) == Run(later + STEP, later + STEP)
