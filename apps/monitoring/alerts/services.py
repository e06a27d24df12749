"""Opens and ends alerts, and reports both."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from apps.monitoring.alerts.conditions import Problem, find_problems
from apps.monitoring.alerts.hysteresis import Run
from apps.monitoring.alerts.notify import report, send_due
from apps.monitoring.models import Alert, AlertKind, PendingChange

KEEP = timedelta(days=30)
Key = tuple[str, str]
"""Kind and subject."""


def check(moment: float) -> None:
    """Open an alert for each problem that lasts, end those that stay away, and report both.

    Args:
        moment: Unix time.
    """
    now = datetime.fromtimestamp(moment, UTC)
    problems: dict[Key, Problem] = {
        (found.kind, found.subject): found for found in find_problems(moment)
    }
    with transaction.atomic():
        report(_update(problems, now), now)
    send_due(now)
    Alert.objects.filter(ended__lt=now - KEEP).delete()


def _update(problems: Mapping[Key, Problem], now: datetime) -> list[Alert]:
    """Return the alerts that began or ended."""
    current = {
        (alert.kind, alert.subject): alert
        for alert in Alert.objects.select_for_update().filter(ended=None)
    }
    runs = _count(problems.keys() ^ current.keys(), now)
    changed = []
    for key, run in runs.items():
        alert = current.get(key)
        if not run.is_enough(AlertKind(key[0]), is_open=alert is not None):
            continue
        changed += [_end(alert, run)] if alert else _begin(problems[key], run)
        PendingChange.objects.filter(kind=key[0], subject=key[1]).delete()
    return changed


def _count(contradicted: set[Key], now: datetime) -> dict[Key, Run]:
    """Write down for how many checks each of these has contradicted its alert, or had none."""
    stored = {(row.kind, row.subject): row for row in PendingChange.objects.select_for_update()}
    for key in stored.keys() - contradicted:
        stored[key].delete()
    runs = {
        key: _run_of(stored[key]).extended(now) if key in stored else Run(now, now)
        for key in contradicted
    }
    PendingChange.objects.bulk_create(
        [
            PendingChange(
                kind=kind, subject=subject, first=run.first, latest=run.latest, checks=run.checks
            )
            for (kind, subject), run in runs.items()
        ],
        update_conflicts=True,
        unique_fields=["kind", "subject"],
        update_fields=["first", "latest", "checks"],
    )
    return runs


def _run_of(row: PendingChange) -> Run:
    return Run(row.first, row.latest, row.checks)


def _begin(found: Problem, run: Run) -> list[Alert]:
    alert, is_new = Alert.objects.get_or_create(
        kind=found.kind,
        subject=found.subject,
        ended=None,
        defaults={"text": found.text, "begun": run.first},
    )
    return [alert] if is_new else []  # another worker may have been faster


def _end(alert: Alert, run: Run) -> Alert:
    alert.ended = run.first
    alert.save(update_fields=["ended"])
    return alert


def has_open_alert(user: User) -> bool:
    return user.is_staff and Alert.objects.filter(ended=None).exists()
