"""People who may log in: invite, disable and remove them, within an admin's rights.

An admin is `is_staff`: they manage servers, shared tools and people. Everybody else is a member.
"""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from apps.core.accounts.login_links import login_path
from apps.core.models import INVITATION_LIFETIME, LoginLink, Removal
from apps.core.tasks import remove_person


class NotAllowed(Exception):
    """An action an admin may not take. The message gives the reason and an alternative."""


def everybody() -> QuerySet[User]:
    """All people, those who may log in first."""
    return User.objects.order_by("-is_active", "-is_staff", "username")


def invite(username: str, *, admin: bool) -> tuple[User, str]:
    """A new person without a password, and the path of the link by which they choose one."""
    with transaction.atomic():
        person = User.objects.create_user(username, is_staff=admin)
        return person, new_link(person)


def new_link(person: User) -> str:
    """The path of a link by which a person chooses a (new) password.

    Their older links end; the password they have stays until they choose another.
    """
    token = LoginLink.issue(person, lifetime=INVITATION_LIFETIME, sets_password=True)
    return login_path(token)


def set_active(person: User, active: bool, *, by: User) -> None:
    """Let a person log in, or not. Sessions and API keys of a disabled person stop working.

    Raises:
        NotAllowed: they would disable themselves.
    """
    _not_oneself(person, by)
    person.is_active = active
    person.save(update_fields=["is_active"])


def set_admin(person: User, admin: bool, *, by: User) -> None:
    """Make a person an admin or a member.

    Raises:
        NotAllowed: they would change their own role.
    """
    _not_oneself(person, by)
    person.is_staff = admin
    if not admin:
        person.is_superuser = False
    person.save(update_fields=["is_staff", "is_superuser"])


def remove(person: User, *, by: User) -> None:
    """Lock a person out now; a worker deletes them and all that is theirs (`core/removal.py`).

    Raises:
        NotAllowed: they would remove themselves.
    """
    _not_oneself(person, by)
    with transaction.atomic():
        set_active(person, False, by=by)
        Removal.objects.get_or_create(user=person)
        # Without the broker beat does it later.
        transaction.on_commit(lambda: remove_person.delay(person.pk), robust=True)


def _not_oneself(person: User, by: User) -> None:
    # So there is always an admin left: the one who did it.
    if person.pk == by.pk:
        raise NotAllowed("You cannot do this to yourself. Ask another admin.")
