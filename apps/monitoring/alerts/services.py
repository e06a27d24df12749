"""Opens and ends alerts, and reports both."""

from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from apps.monitoring.alerts.conditions import find_problems
from apps.monitoring.alerts.notify import notify
from apps.monitoring.models import Alert

KEEP = timedelta(days=30)


def check(moment: float) -> None:
    """Open an alert for each new problem, end those that are over, and report both.

    Args:
        moment: Unix time.
    """
    now = datetime.fromtimestamp(moment, UTC)
    for alert in _update(moment, now):
        notify(alert)
    Alert.objects.filter(ended__lt=now - KEEP).delete()


def _update(moment: float, now: datetime) -> list[Alert]:
    """Return the alerts that began or ended."""
    problems = {(found.kind, found.subject): found for found in find_problems(moment)}
    changed = []
    with transaction.atomic():
        open_ones = list(Alert.objects.select_for_update().filter(ended=None))
        for alert in open_ones:
            if (alert.kind, alert.subject) not in problems:
                alert.ended = now
                alert.save(update_fields=["ended"])
                changed.append(alert)
        known = {(alert.kind, alert.subject) for alert in open_ones}
        for key, found in problems.items():
            if key in known:
                continue
            alert, is_new = Alert.objects.get_or_create(
                kind=found.kind,
                subject=found.subject,
                ended=None,
                defaults={"text": found.text, "begun": now},
            )
            changed += [alert] if is_new else []
    return changed


def has_open_alert(user: User) -> bool:
    return user.is_staff and Alert.objects.filter(ended=None).exists()
