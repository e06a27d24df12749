"""Identifies the sender of a request from its headers, before its body is read."""

from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest, parse_cookie

from apps.core.models import ApiKey

BEARER = "bearer "


def sender(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The key of the user whose API key or login these headers carry. Asks the database."""
    cookies = ""
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"authorization" and text[: len(BEARER)].lower() == BEARER:
            user = ApiKey.user_of(text[len(BEARER) :])
            return None if user is None else user.pk
        if name == b"x-api-key":
            user = ApiKey.user_of(text)
            return None if user is None else user.pk
        if name == b"cookie":
            cookies = text
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    request = HttpRequest()
    request.session = SessionStore(key)
    person = get_user(request)
    return person.pk if person.is_active else None
