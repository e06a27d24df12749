"""Rows that belong to one user."""

from typing import Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models

T_co = TypeVar("T_co", bound=models.Model, covariant=True)


class OwnedQuerySet(models.QuerySet[T_co]):
    """Rows of one user. Every look-up starts here: what is not yours is not there."""

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        return self.filter(owner_id=user.pk)


class Owned(models.Model):
    """A row that belongs to one user."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
