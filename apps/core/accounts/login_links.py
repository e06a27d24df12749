"""The way in for a person who has no password yet."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.urls import reverse

from apps.core.models import LOGIN_LINK_LIFETIME, LoginLink

FIRST_USERNAME = "admin"
STARTUP_LINK_LIFETIME = timedelta(minutes=15)
"""A start prints its link where others may read it later: a terminal's log, a service's journal."""


def create_login_link(
    *, username: str | None = None, lifetime: timedelta = LOGIN_LINK_LIFETIME
) -> str:
    """The path of a one-time login link.

    Without a name: of the first admin, who is made when the database has no user yet.

    Raises:
        ObjectDoesNotExist: there is no active user of that name.
    """
    user = first_admin() if username is None else _active(username)
    if user is None:
        raise ObjectDoesNotExist(f"There is no active user {username or 'who is an admin'}.")
    return login_path(LoginLink.issue(user, lifetime=lifetime))


def startup_path() -> str:
    """Return the path printed at a start: a login link, unless the first admin can log in.

    Raises:
        ObjectDoesNotExist: no admin is active.
    """
    admin = first_admin()
    if admin is not None and admin.has_usable_password():
        return reverse("login", urlconf="apps.core.urls")
    return create_login_link(lifetime=STARTUP_LINK_LIFETIME)


def first_admin() -> User | None:
    """The longest-standing active admin; in an empty database one is made."""
    if not User.objects.exists():
        User.objects.create_superuser(FIRST_USERNAME)
    admins = User.objects.filter(is_staff=True, is_active=True)
    return admins.order_by("-is_superuser", "pk").first()


def login_path(token: str) -> str:
    # Only this room's addresses: all of them would import every room, which a start waits for.
    return reverse("login_link", urlconf="apps.core.urls", args=[token])


def _active(username: str) -> User | None:
    return User.objects.filter(username=username, is_active=True).first()
