"""API keys, and the cache of those that were looked up."""

import secrets
import time
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils import timezone

from apps.core.models.limits import Limits, PersonLimits
from apps.core.models.tokens import digest

API_KEY_PREFIX = "wb_"
# A key revoked by another process works this much longer.
KEY_CACHE_SECONDS = 2.0
MAX_CACHED_KEYS = 1000
# A revoked key can be restored for so long; then its row goes.
RESTORABLE = timedelta(hours=1)


class KeyScope(models.TextChoices):
    FULL = "full", "Full access"
    READ = "read", "Read only"


class KeyLane(models.TextChoices):
    """How urgent the requests are that a program sends to model servers, the most urgent first."""

    PERSON = "person", "Person, someone waits for the answer"
    AGENT = "agent", "Agent, after people and before batch"
    BATCH = "batch", "Batch, gives its slot to people and agents"
    IDLE = "idle", "Idle, uses free slots only"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def working(self) -> Self:
        """Keys that are neither revoked nor expired."""
        unexpired = models.Q(expires=None) | models.Q(expires__gt=timezone.now())
        return self.filter(unexpired, revoked=None)

    def listed(self) -> Self:
        """Keys a person sees: the expired ones too, without those that were revoked."""
        return self.filter(revoked=None)


class ApiKey(Limits):
    """A key another program sends as `Authorization: Bearer wb_...`. Only its hash is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys"
    )
    name = models.CharField(max_length=100)
    start = models.CharField(max_length=12, help_text="The first characters, to tell keys apart.")
    token_hash = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=4, choices=KeyScope.choices, default=KeyScope.FULL)
    lane = models.CharField(max_length=6, choices=KeyLane.choices, default=KeyLane.PERSON)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    revoked = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.start}…)"

    @property
    def has_expired(self) -> bool:
        return self.expires is not None and self.expires <= timezone.now()

    @classmethod
    def issue(
        cls,
        *,
        user: User,
        name: str,
        scope: str = KeyScope.FULL,
        lane: str = KeyLane.PERSON,
        expires: datetime | None = None,
    ) -> tuple[Self, str]:
        """A new key and its token, which cannot be shown a second time."""
        token = API_KEY_PREFIX + secrets.token_urlsafe(32)
        key = cls.objects.create(
            user=user,
            name=name,
            start=token[:8],
            token_hash=digest(token),
            scope=scope,
            lane=lane,
            expires=expires,
        )
        return key, token

    @classmethod
    def find(cls, token: str) -> "ApiKey | None":
        """Return the working key of a token with its active user, None if there is none.

        Known tokens are looked up every KEY_CACHE_SECONDS, and at once where this process changed a
        key or a user: programs send many requests in a row. Records the use, at most once a minute.
        """
        if (known := cls.find_known(token)) is not None:
            return known
        token_hash = digest(token)
        key = cls.look_up([token_hash]).get(token_hash)
        if key is None:
            return None
        key.record_use()
        return _copied(key)

    @classmethod
    def find_known(cls, token: str) -> "ApiKey | None":
        """Return the key of a token that was looked up a moment ago; asks no database."""
        until, key = _known.keys.get(digest(token), (0.0, None))
        return _copied(key) if key is not None and time.monotonic() < until else None

    @classmethod
    def look_up(cls, token_hashes: Collection[str]) -> dict[str, "ApiKey"]:
        """Return the working keys of active users, by hash; from now on they are the known ones.

        Asks the database, in one query.
        """
        changes = _known.changes
        working = cls.objects.working().select_related("user", "user__program_limits")
        found = {
            key.token_hash: key
            for key in working.filter(token_hash__in=token_hashes, user__is_active=True)
        }
        until = time.monotonic() + KEY_CACHE_SECONDS
        if len(_known.keys) + len(found) > MAX_CACHED_KEYS:
            _known.keys.clear()
        for token_hash in token_hashes:
            _known.keys.pop(token_hash, None)
        if changes == _known.changes:  # else what was read may be from before the change
            _known.keys.update({token_hash: (until, key) for token_hash, key in found.items()})
        return found

    @classmethod
    def user_of(cls, token: str) -> User | None:
        """Return the active user of a token, None if there is none."""
        key = cls.find(token)
        return None if key is None else key.user

    def record_use(self) -> None:
        now = timezone.now()
        if self.last_used is None or now - self.last_used > timedelta(minutes=1):
            ApiKey.objects.filter(pk=self.pk).update(last_used=now)

    def revoke(self) -> None:
        """End the key at once, and delete those that can no longer be restored."""
        now = timezone.now()
        ApiKey.objects.filter(user_id=self.user_id, revoked__lt=now - RESTORABLE).delete()
        self.revoked = now
        self.save(update_fields=["revoked"])

    def restore(self) -> None:
        self.revoked = None
        self.save(update_fields=["revoked"])


def _copied(key: ApiKey) -> ApiKey:
    """Return a copy: a request may change what it gets."""
    found = copy(key)
    found.user = copy(key.user)
    return found


@dataclass(slots=True)
class _Known:
    keys: dict[str, tuple[float, ApiKey]] = field(default_factory=dict)
    """By hash, and until when."""
    changes: int = 0
    """Counts what was changed here."""

    def forget(self) -> None:
        self.changes += 1
        self.keys.clear()


_known = _Known()


@receiver([post_save, post_delete], sender=ApiKey)
@receiver([post_save, post_delete], sender=PersonLimits)
@receiver([post_save, post_delete], sender=User)
def forget_cached_keys(**_: object) -> None:
    """Look every key up again: a key or a user was changed here."""
    _known.forget()
    transaction.on_commit(_known.forget)  # others read what was there before until then
