"""The settings page: one page whose sections have addresses, for several views."""

from typing import Any
from urllib.parse import urlsplit

from django import get_version as django_version
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.core.accounts import devices, people
from apps.core.accounts.forms import InviteForm, NameForm, password_form
from apps.core.accounts.limit_forms import LimitsForm
from apps.core.models import (
    INVITATION_LIFETIME,
    Appearance,
    Density,
    KeyLane,
    KeyScope,
    LoginLink,
    PersonLimits,
    TextSize,
    Theme,
)

NEW_KEY = "new-key"
KEY_LIFETIMES = {"": "Never expires", "30": "30 days", "90": "90 days", "365": "1 year"}


def show(request: HttpRequest, *, at: str = "", status: int = 200, **shown: Any) -> HttpResponse:
    """Render the page.

    Args:
        at: the section that a person came for; it scrolls into view.
        shown: what one view adds: a refused form, a new key, the link of an invitation.
    """
    user = request.user
    assert isinstance(user, User)
    context = {
        "at": at,
        "name_form": NameForm(instance=user),
        "password_form": password_form(user),
        "other_devices": [
            (devices.name_of(device.user_agent), device.signed_in)
            for device in devices.others(user, request.session.session_key)
        ],
        "this_device": devices.name_of(request.headers.get("User-Agent", "")),
        "appearance": Appearance.objects.filter(user=user).first() or Appearance(),
        "themes": Theme.choices,
        "densities": Density.choices,
        "text_sizes": TextSize.choices,
        "keys": [(key, LimitsForm(key, prefix=f"key-{key.pk}")) for key in user.api_keys.listed()],
        "new_key_form": LimitsForm(None, prefix=NEW_KEY),
        "person_limits": PersonLimits.objects.filter(user=user).first(),
        "key_scopes": KeyScope.choices,
        "key_lanes": KeyLane.choices,
        "key_lifetimes": KEY_LIFETIMES.items(),
        "django_version": django_version(),
    }
    if user.is_staff:
        context |= _people(shown.get("link", ""))
    return render(request, "core/accounts/settings.html", context | shown, status=status)


def _people(link: str) -> dict[str, Any]:
    waiting = LoginLink.objects.waiting().filter(sets_password=True)
    return {
        "people": [
            (person, LimitsForm(_limits_of(person), prefix=f"person-{person.pk}"))
            for person in people.everybody().select_related("removal", "program_limits")
        ],
        "invitations": dict(waiting.values_list("user_id", "expires")),
        "invite_form": InviteForm(),
        "here_only": urlsplit(link).hostname in {"localhost", "127.0.0.1", "::1"},
        "days": INVITATION_LIFETIME.days,
    }


def _limits_of(person: User) -> PersonLimits | None:
    return getattr(person, "program_limits", None)
