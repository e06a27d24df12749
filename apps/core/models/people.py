"""People: the links that let them in, and those who are to be deleted."""

import secrets
from datetime import timedelta
from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone

from apps.core.models.tokens import digest

LOGIN_LINK_LIFETIME = timedelta(hours=1)
INVITATION_LIFETIME = timedelta(days=7)


class LoginLinkQuerySet(models.QuerySet["LoginLink"]):
    def waiting(self) -> Self:
        """Links that would let somebody in now."""
        return self.filter(used=None, expires__gt=timezone.now(), user__is_active=True)


class LoginLink(models.Model):
    """A link that logs one person in once: the first visit, an invitation, a forgotten password."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    sets_password = models.BooleanField(
        default=False, help_text="Who opens it chooses a password before they are let in."
    )
    used = models.DateTimeField(null=True, blank=True)

    objects = LoginLinkQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Login link of {self.user}"

    @classmethod
    def issue(
        cls,
        user: User,
        *,
        lifetime: timedelta = LOGIN_LINK_LIFETIME,
        sets_password: bool = False,
    ) -> str:
        """A new token. Older links of that user stop working: there is one way in at a time."""
        cls.objects.filter(user=user).delete()
        token = secrets.token_urlsafe(32)
        cls.objects.create(
            user=user,
            token_hash=digest(token),
            expires=timezone.now() + lifetime,
            sets_password=sets_password,
        )
        return token

    @classmethod
    def find(cls, token: str) -> "LoginLink | None":
        """The link of a token that would let somebody in now. Looking does not use it up."""
        waiting = cls.objects.waiting().filter(token_hash=digest(token))
        return waiting.select_related("user").first()

    @classmethod
    def redeem(cls, token: str) -> User | None:
        """The user the token lets in, the first time it is redeemed; None ever after."""
        link = cls.objects.filter(token_hash=digest(token))
        return link.get().user if link.waiting().update(used=timezone.now()) else None


class Removal(models.Model):
    """A person who was locked out and is to be deleted with all that is theirs, by a worker."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="removal"
    )
    asked = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Removal of {self.user}"
