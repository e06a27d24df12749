"""Permissions of admins. An admin is a user with `is_staff`."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

View = Callable[..., HttpResponse]


def require_admin(request: HttpRequest, refusal: str = "") -> None:
    """Return for admins alone. The login itself was checked before any view.

    Raises:
        PermissionDenied: The person is no admin; its page says `refusal`.
    """
    if not cast(User, request.user).is_staff:
        raise PermissionDenied(refusal)


def admins_only(view: View) -> View:
    """Refuse everyone but admins before `view` runs."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        require_admin(request)
        return view(request, *args, **kwargs)

    return checked
