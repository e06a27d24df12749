"""The browsers a person is signed in on: recorded at the login, ended by themselves."""

import re
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from apps.core.models import Device

BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
NAMES = {"Edg": "Edge", "OPR": "Opera"}
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


@receiver(user_logged_in)
def remember(request: HttpRequest, user: User, **_: Any) -> None:
    if request.session.session_key is None:  # not saved before its first request has ended
        request.session.save()
    Device.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={"user": user, "user_agent": request.headers.get("User-Agent", "")[:300]},
    )


@receiver(user_logged_out)
def forget(request: HttpRequest, **_: Any) -> None:
    Device.objects.filter(session_key=request.session.session_key).delete()


def others(user: User, session_key: str | None) -> list[Device]:
    """The devices of a user but for this one. Those whose session has ended are forgotten."""
    devices = Device.objects.filter(user=user).exclude(session_key=session_key or "")
    alive = set(
        Session.objects.filter(
            session_key__in=devices.values("session_key"), expire_date__gt=timezone.now()
        ).values_list("session_key", flat=True)
    )
    devices.exclude(session_key__in=alive).delete()
    return list(devices[:50])


def sign_out_others(user: User, session_key: str | None) -> int:
    """End the other sessions of a user, also those that were never listed; return how many."""
    ended = [
        session.session_key
        for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator()
        if session.session_key != session_key
        and session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    for key in ended:
        SessionStore(key).delete()
    Device.objects.filter(user=user).exclude(session_key=session_key or "").delete()
    return len(ended)


def follow(old_key: str | None, new_key: str | None) -> None:
    """The session of this device got another key: a changed password does that."""
    Device.objects.filter(session_key=old_key).update(session_key=new_key)


def name_of(user_agent: str) -> str:
    """Mozilla/5.0 (X11; Linux x86_64) … Firefox/140.0 -> Firefox on Linux."""
    browser = next((found for found in BROWSERS if re.search(rf"{found}\w*/", user_agent)), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    return " on ".join(filter(None, [NAMES.get(browser, browser), system])) or "Unknown browser"
