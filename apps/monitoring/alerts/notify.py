"""Sends alerts to the webhook and the e-mail addresses that the settings name.

What cannot be sent is tried again, after longer and longer waits, for about half a day. The alert
itself is on the page from the first.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from smtplib import SMTPException, SMTPResponseException

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F

from apps.core.outgoing import Limits, OutgoingError, guarded_client
from apps.monitoring.models import Alert, Channel, Delivery

logger = logging.getLogger(__name__)

LIMITS = Limits(connect_seconds=5.0, read_seconds=5.0, max_bytes=64 * 1024)
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=2)
MOST_ATTEMPTS = 14
# Of one check, which must not hold up the samples.
MOST_AT_ONCE = 20


class NotSent(Exception):
    """A receiver did not take a report; the message says why, without its address."""


def report(alerts: Iterable[Alert], now: datetime) -> None:
    """Note that these alerts began or ended, for all who are to be told; see `send_due`."""
    channels = [
        *([Channel.WEBHOOK] if settings.ALERT_WEBHOOK else []),
        *([Channel.MAIL] if settings.ALERT_EMAILS else []),
    ]
    Delivery.objects.bulk_create(
        Delivery(alert=alert, channel=channel, is_end=alert.ended is not None, due=now)
        for alert in alerts
        for channel in channels
    )


def send_due(now: datetime) -> None:
    """Send what is due, oldest first; after a failure nothing more on the same channel.

    Never raises for a receiver that does not answer.
    """
    due = Delivery.objects.filter(due__lte=now).select_related("alert")
    failed: set[str] = set()
    for delivery in due.order_by("pk")[:MOST_AT_ONCE]:
        if delivery.channel not in failed and _claim(delivery, now) and not _try(delivery):
            failed.add(delivery.channel)


def wait_after(attempts: int) -> timedelta:
    """Return how long to wait after so many attempts that failed: 30 s, doubled each time."""
    doubled = timedelta(seconds=FIRST_WAIT.total_seconds() * 2.0 ** (attempts - 1))
    return min(LONGEST_WAIT, doubled)


def _claim(delivery: Delivery, now: datetime) -> bool:
    """Set when it is tried next; False if another worker has done so."""
    delivery.attempts += 1
    return bool(
        Delivery.objects.filter(pk=delivery.pk, due=delivery.due).update(
            attempts=F("attempts") + 1, due=now + wait_after(delivery.attempts)
        )
    )


def _try(delivery: Delivery) -> bool:
    """Send a report; return False if the receiver does not take it."""
    send: dict[str, Callable[[Delivery], None]] = {
        Channel.WEBHOOK: async_to_sync(_call_webhook),
        Channel.MAIL: _send_mail,
    }
    try:
        send[delivery.channel](delivery)
    except NotSent as error:
        logger.warning("An alert was not sent, attempt %d: %s", delivery.attempts, error)
        if delivery.attempts >= MOST_ATTEMPTS:
            logger.error("An alert is not sent any more: %s", delivery.text)
            delivery.delete()
        return False
    delivery.delete()
    return True


async def _call_webhook(delivery: Delivery) -> None:
    alert = delivery.alert
    body = {
        "text": delivery.text,
        "kind": alert.kind,
        "subject": alert.subject,
        "begun": alert.begun.isoformat(),
        "ended": alert.ended.isoformat() if delivery.is_end and alert.ended else None,
    }
    try:
        # The address is the operator's own: it may be in their network.
        async with guarded_client(LIMITS, allow_private=True) as client:
            reply = await client.post(settings.ALERT_WEBHOOK, json=body)
    except (httpx2.HTTPError, httpx2.InvalidURL, OutgoingError, OSError) as error:
        # An error's text may name the address, which may contain a secret.
        raise NotSent(f"the webhook could not be called ({type(error).__name__})") from error
    if reply.status_code >= 300:
        raise NotSent(f"the webhook answered with status {reply.status_code}")


def _send_mail(delivery: Delivery) -> None:
    over = " (over)" if delivery.is_end else ""
    subject = f"Workbench: {delivery.alert.get_kind_display()}{over}"
    try:
        send_mail(subject, delivery.text, settings.DEFAULT_FROM_EMAIL, settings.ALERT_EMAILS)
    except (SMTPException, OSError) as error:
        # A server's reply may repeat the login and the addresses.
        code = f" {error.smtp_code}" if isinstance(error, SMTPResponseException) else ""
        raise NotSent(f"the mail could not be sent ({type(error).__name__}{code})") from error
