"""Expiry of vectors: a text can be guessed from its vector, and each takes kilobytes.

Those of datasets and jobs stay while something uses them, those of texts that were only predicted
for days.
"""

from collections.abc import Sequence
from datetime import date, timedelta

from django.conf import settings
from django.utils import timezone

from apps.embeddings.models import Embedding

RENEW_DAYS = 30
"""The expiry of a vector in use is extended at most this often."""
PIECE_ROWS = 5_000


def expiry_date(*, lasting: bool) -> date | None:
    """The day from which a vector saved today may be deleted; None: it is not saved."""
    if lasting:
        return _lasting_end()
    days: int = settings.KEEP_PREDICTED_DAYS
    return _today() + timedelta(days=days) if days else None


def extend_expiry(fingerprint: str, hashes: Sequence[bytes]) -> None:
    """Keep vectors that a dataset or job uses now for as long as new ones."""
    end = _lasting_end()
    used = Embedding.objects.filter(model__fingerprint=fingerprint, text_hash__in=hashes)
    due = used.filter(expires__lt=end - timedelta(days=RENEW_DAYS)).order_by("pk")
    # Read first: nearly always there is nothing to write, and a look-up need not wait for writers.
    for key in due.values_list("pk", flat=True):
        Embedding.objects.filter(pk=key).update(expires=end)


def delete_expired() -> int:
    """Delete expired vectors in batches, and return their number.

    Vectors of versions without expiry get one.
    """
    endless = Embedding.objects.filter(expires=None)
    while keys := list(endless.values_list("pk", flat=True)[:PIECE_ROWS]):
        Embedding.objects.filter(pk__in=keys).update(expires=_lasting_end())
    deleted = 0
    expired = Embedding.objects.filter(expires__lte=_today())
    while keys := list(expired.values_list("pk", flat=True)[:PIECE_ROWS]):
        deleted += Embedding.objects.filter(pk__in=keys).delete()[0]
    return deleted


def delete_newer_than(fingerprint: str, newest: int) -> None:
    """Delete a model's vectors saved after the row `newest`: another model may have made them."""
    late = Embedding.objects.filter(model__fingerprint=fingerprint, pk__gt=newest)
    while keys := list(late.values_list("pk", flat=True)[:PIECE_ROWS]):
        Embedding.objects.filter(pk__in=keys).delete()


def newest_key() -> int:
    """The key of the last saved vector; 0 if there is none."""
    return Embedding.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _lasting_end() -> date:
    return _today() + timedelta(days=settings.KEEP_VECTORS_DAYS)


def _today() -> date:
    return timezone.now().date()
