"""Preferences for all chats of a person, and the list of their shares."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.chat.models import Preferences, Share
from apps.chat.views.chat_list import sidebar_context
from apps.core.api import owner


@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    user = owner(request)
    if request.method == "POST":
        chosen = {"prefill_drafts": "prefill_drafts" in request.POST}
        Preferences.objects.update_or_create(owner=user, defaults=chosen)
        messages.success(request, "Saved.")
        return redirect("chat:preferences")
    context = {
        "preferences": Preferences.objects.filter(owner=user).first() or Preferences(),
        "shares": Share.objects.owned_by(user).filter(conversation__deleted_at=None),
    }
    return render(request, "chat/preferences.html", sidebar_context(request) | context)
