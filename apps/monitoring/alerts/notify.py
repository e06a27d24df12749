"""Sends alerts to the webhook and the e-mail addresses that the settings name.

Each is tried once. What cannot be sent is in the log; the alert itself is on the page.
"""

import logging
from smtplib import SMTPException

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.mail import send_mail

from apps.core.outgoing import Limits, OutgoingError, guarded_client
from apps.monitoring.models import Alert

logger = logging.getLogger(__name__)

LIMITS = Limits(connect_seconds=5.0, read_seconds=5.0, max_bytes=64 * 1024)


def notify(alert: Alert) -> None:
    """Report that an alert began or ended. Never raises for a receiver that does not answer."""
    if settings.ALERT_WEBHOOK:
        async_to_sync(_call_webhook)(alert)
    if settings.ALERT_EMAILS:
        _send_mail(alert)


def _text(alert: Alert) -> str:
    return f"Over: {alert.text}" if alert.ended else alert.text


async def _call_webhook(alert: Alert) -> None:
    body = {
        "text": _text(alert),
        "kind": alert.kind,
        "subject": alert.subject,
        "begun": alert.begun.isoformat(),
        "ended": alert.ended and alert.ended.isoformat(),
    }
    try:
        # The address is the operator's own: it may be in their network.
        async with guarded_client(LIMITS, allow_private=True) as client:
            reply = await client.post(settings.ALERT_WEBHOOK, json=body)
        if reply.status_code >= 300:
            logger.warning("The alert webhook answered with status %d.", reply.status_code)
    except (httpx2.HTTPError, httpx2.InvalidURL, OutgoingError, OSError) as error:
        logger.warning("The alert webhook could not be called: %s", error)


def _send_mail(alert: Alert) -> None:
    subject = f"Workbench: {alert.get_kind_display()}{' (over)' if alert.ended else ''}"
    try:
        send_mail(subject, _text(alert), settings.DEFAULT_FROM_EMAIL, settings.ALERT_EMAILS)
    except (SMTPException, OSError) as error:
        logger.warning("The alert e-mail could not be sent: %s", error)
