"""The way in for a person who has no password yet."""

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.urls import reverse

from apps.core.models import LoginLink

FIRST_USERNAME = "admin"


def create_login_link(*, username: str | None = None) -> str:
    """The path of a one-time login link.

    Without a name: of the first superuser, who is made when the database has no user yet.

    Raises:
        ObjectDoesNotExist: there is no active user of that name.
    """
    if username is not None:
        user = User.objects.filter(username=username, is_active=True).first()
    else:
        if not User.objects.exists():
            User.objects.create_superuser(FIRST_USERNAME)
        user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user is None:
        raise ObjectDoesNotExist(f"There is no active user {username or 'with all rights'}.")
    # Only this room's addresses: all of them would import every room, which a start waits for.
    return reverse("login_link", urlconf="apps.core.urls", args=[LoginLink.issue(user)])
