"""Preferences for all chats of a person; the settings page shows them."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.chat.models import Preferences
from apps.core.api import owner


@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Save a switch, or lead to the settings page, where this page was once on its own."""
    if request.method != "POST":
        return HttpResponseRedirect(f"{reverse('core:settings')}#reading-ahead")
    chosen = {"prefill_drafts": "prefill_drafts" in request.POST}
    Preferences.objects.update_or_create(owner=owner(request), defaults=chosen)
    if request.headers.get("HX-Request"):
        return HttpResponse("Saved")
    return HttpResponseRedirect(f"{reverse('core:settings')}#reading-ahead")
