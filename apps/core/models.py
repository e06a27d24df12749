"""Models of every room: owned rows, API keys, one-time login links."""

import hashlib
import secrets
import time
from copy import copy
from datetime import timedelta
from typing import Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db import models
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils import timezone

T_co = TypeVar("T_co", bound=models.Model, covariant=True)

API_KEY_PREFIX = "wb_"
# A key revoked by another process works this much longer.
KEY_CACHE_SECONDS = 2.0
MAX_CACHED_KEYS = 1000
LOGIN_LINK_LIFETIME = timedelta(hours=1)
INVITATION_LIFETIME = timedelta(days=7)


def digest(token: str) -> str:
    """SHA-256 of a token of ours, hex: of 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


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


class ApiKey(models.Model):
    """A key another program sends as `Authorization: Bearer wb_...`. Only its hash is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys"
    )
    name = models.CharField(max_length=100)
    start = models.CharField(max_length=12, help_text="The first characters, to tell keys apart.")
    token_hash = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.start}…)"

    @classmethod
    def issue(cls, *, user: User, name: str) -> tuple[Self, str]:
        """A new key and its token, which cannot be shown a second time."""
        token = API_KEY_PREFIX + secrets.token_urlsafe(32)
        key = cls.objects.create(user=user, name=name, start=token[:8], token_hash=digest(token))
        return key, token

    @classmethod
    def user_of(cls, token: str) -> User | None:
        """Return the active user of a token, None if there is none.

        Known tokens are looked up every KEY_CACHE_SECONDS, and at once where this process changed a
        key or a user: programs send many requests in a row. Records the use, at most once a minute.
        """
        token_hash = digest(token)
        expires, user = _users_by_key.get(token_hash, (0.0, None))
        if user is not None and time.monotonic() < expires:
            return copy(user)
        key = cls.objects.select_related("user").filter(token_hash=token_hash).first()
        if key is None or not key.user.is_active:
            return None
        now = timezone.now()
        if key.last_used is None or now - key.last_used > timedelta(minutes=1):
            cls.objects.filter(pk=key.pk).update(last_used=now)
        if len(_users_by_key) >= MAX_CACHED_KEYS:
            _users_by_key.clear()
        _users_by_key[token_hash] = time.monotonic() + KEY_CACHE_SECONDS, copy(key.user)
        return key.user


_users_by_key: dict[str, tuple[float, User]] = {}


@receiver([post_save, post_delete], sender=ApiKey)
@receiver([post_save, post_delete], sender=User)
def forget_cached_keys(**_: object) -> None:
    """Look every key up again: a key or a user was changed here."""
    _users_by_key.clear()


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
