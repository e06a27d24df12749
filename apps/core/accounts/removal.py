"""Deleting a person and all that is theirs, in pieces: nobody else waits for the database."""

import logging
from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.dispatch import Signal

from apps.core.models import Removal

logger = logging.getLogger(__name__)

PIECE_ROWS = 2000

removing = Signal()
"""A person is about to be deleted (`person`): rooms stop their work and remove their files."""


def remove_now(person: User) -> None:
    """Delete a person with everything that refers to them. May be begun again after a crash."""
    for receiver, error in removing.send_robust(sender=User, person=person):
        if isinstance(error, Exception):
            logger.error("%s failed for %s", receiver, person.pk, exc_info=error)
    delete_in_pieces(User.objects.filter(pk=person.pk))


def delete_in_pieces(rows: models.QuerySet[Any], path: tuple[type[models.Model], ...] = ()) -> None:
    """Delete rows after all that hangs on them, `PIECE_ROWS` at a time, each in a transaction.

    `path` holds the models above: a model that refers to itself is left to its own deletion.
    """
    path = (*path, rows.model)
    for model, field in _dependents(rows.model):
        if model not in path and model is not Removal:  # which says that this is not done yet
            below: models.QuerySet[Any] = model._base_manager.filter(**{f"{field}__in": rows})
            delete_in_pieces(below, path)
    manager = rows.model._base_manager
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:PIECE_ROWS]):
        manager.filter(pk__in=keys).delete()


def _dependents(model: type[models.Model]) -> list[tuple[type[models.Model], str]]:
    """The models whose rows go with a row of this one, and their field that refers to it.

    Those that must not go while others refer to them come last.
    """
    found = [
        (relation.related_model, relation.field.name)
        for relation in model._meta.get_fields(include_hidden=True)
        if isinstance(relation, models.ManyToOneRel)
        and relation.on_delete is models.CASCADE
        and isinstance(relation.related_model, type)
    ]
    return sorted(found, key=lambda dependent: _is_restricting(dependent[0]))


def _is_restricting(model: type[models.Model]) -> bool:
    return any(
        isinstance(relation, models.ManyToOneRel)
        and relation.on_delete in {models.RESTRICT, models.PROTECT}
        for relation in model._meta.get_fields(include_hidden=True)
    )
