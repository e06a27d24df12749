"""The first page: a door to each kind of work, until a person has gone through one of them.

The rooms are above this one, so each registers its own door.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User


@dataclass(frozen=True)
class Door:
    """One kind of work: its card, and whether a person has begun with it."""

    template: str
    """Renders the card."""
    is_used: Callable[[User], bool]
    context: Callable[[User], Mapping[str, object]]
    """What its card shows. `problem` is the reason why its example cannot work, "" if it can."""
    order: int


_doors: list[Door] = []


def register_door(door: Door) -> None:
    _doors.append(door)
    _doors.sort(key=lambda one: one.order)


def is_new(user: User) -> bool:
    """Return whether a person has not begun with anything."""
    return not any(door.is_used(user) for door in _doors)


def cards(user: User) -> list[Mapping[str, object]]:
    """Return the template and the context of each door's card."""
    return [{"template": door.template, **door.context(user)} for door in _doors]
