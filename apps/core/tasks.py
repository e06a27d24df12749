"""Deleting people in the background.

Not a durable task: that belongs to its owner and would go with them. The `Removal` row is what is
to be done, doing it twice does no harm, and beat begins again what was cut off.
"""

from celery import shared_task
from django.contrib.auth.models import User

from apps.core.accounts.removal import remove_now
from apps.core.models import Removal


@shared_task
def remove_person(pk: int) -> None:
    """Delete a person whose removal was asked for, and all that is theirs."""
    person = User.objects.filter(pk=pk).exclude(removal=None).first()
    if person is not None:
        remove_now(person)


@shared_task
def remove_people() -> None:
    """Finish removals whose message was lost or whose worker ended."""
    for pk in Removal.objects.values_list("user_id", flat=True):
        remove_person(pk)
