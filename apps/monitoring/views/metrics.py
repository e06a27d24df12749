"""GET /metrics, for Prometheus: with the API key of an admin."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from apps.core.api import BearerKey
from apps.monitoring.metrics.collector import exposition

NO_KEY = "Send the API key of an admin as `Authorization: Bearer wb_...`.\n"
NO_ADMIN = "This API key is not of an admin. Create one on the Settings page of an admin.\n"


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    user = BearerKey()(request)
    if user is None:
        headers = {"WWW-Authenticate": "Bearer"}
        return HttpResponse(NO_KEY, status=401, content_type="text/plain", headers=headers)
    if not user.is_staff:
        return HttpResponse(NO_ADMIN, status=403, content_type="text/plain")
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
