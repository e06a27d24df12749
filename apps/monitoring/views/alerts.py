"""The page with the alerts of the last 30 days. For admins: they name everyone's jobs."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.core.permissions import admins_only
from apps.monitoring.models import Alert

SHOWN = 200


@require_safe
@admins_only
def alerts(request: HttpRequest) -> HttpResponse:
    context = {
        "current": Alert.objects.filter(ended=None)[:SHOWN],
        "past": Alert.objects.exclude(ended=None)[:SHOWN],
        "has_webhook": bool(settings.ALERT_WEBHOOK),
        "emails": settings.ALERT_EMAILS,
    }
    return render(request, "monitoring/alerts.html", context)
