"""API keys of one person: create, edit, revoke, restore."""

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.core import quotas
from apps.core.accounts import settings_page
from apps.core.accounts.limit_forms import LimitsForm
from apps.core.accounts.redirects import to_section
from apps.core.api import owner
from apps.core.models import RESTORABLE, ApiKey, KeyLane, KeyScope


@require_POST
@never_cache
def create_key(request: HttpRequest) -> HttpResponse:
    """The new key is in this answer and nowhere else: not in the session, not in the database."""
    user = owner(request)
    name = request.POST.get("name", "").strip()[:100]
    if not name:
        messages.error(request, "Enter a name for the key.")
        return to_section("keys")
    scope = request.POST.get("scope", KeyScope.FULL)
    lane = request.POST.get("lane", KeyLane.PERSON)
    days = request.POST.get("days", "")
    if (
        scope not in KeyScope.values
        or lane not in KeyLane.values
        or days not in settings_page.KEY_LIFETIMES
    ):
        messages.error(request, "Choose access, priority and lifetime of the key from the lists.")
        return to_section("keys")
    form = LimitsForm(None, request.POST, prefix=settings_page.NEW_KEY)
    if not form.is_valid():
        messages.error(request, f"Key not created. {form.first_error()}")
        return to_section("keys")
    expires = timezone.now() + timedelta(days=int(days)) if days else None
    with quotas.counting(user):
        quotas.check("keys", user.api_keys.listed().count())
        key, token = ApiKey.issue(user=user, name=name, scope=scope, lane=lane, expires=expires)
        key.save(update_fields=form.apply_to(key))
    return settings_page.show(request, at="keys", new_token=token, new_name=name)


@require_POST
def edit_key(request: HttpRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(owner(request).api_keys.listed(), pk=pk)
    lane = request.POST.get("lane", "")
    if lane not in KeyLane.values:
        messages.error(request, "Choose the priority of the key from the list.")
        return to_section("keys")
    form = LimitsForm(key, request.POST, prefix=f"key-{key.pk}")
    if not form.is_valid():
        messages.error(request, f"Key “{key.name}” not saved. {form.first_error()}")
        return to_section("keys")
    key.lane = lane
    key.save(update_fields=["lane", *form.apply_to(key)])
    messages.success(request, f"Key “{key.name}” saved.")
    return to_section("keys")


@require_POST
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(owner(request).api_keys.listed(), pk=pk)
    key.revoke()
    return to_section("keys", revoked=key.pk)


@require_POST
def restore_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo of the toast."""
    recent = owner(request).api_keys.filter(revoked__gt=timezone.now() - RESTORABLE)
    key = get_object_or_404(recent, pk=pk)
    key.restore()
    messages.success(request, f"The key “{key.name}” works again.")
    return to_section("keys")
