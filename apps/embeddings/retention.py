"""How long vectors are kept: a text can be guessed from its vector, and each takes kilobytes.

Those of datasets and jobs stay while something uses them, those of texts that were only predicted
for days.
"""

from collections.abc import Sequence
from datetime import date, timedelta

from django.conf import settings
from django.utils import timezone

from apps.embeddings.models import Embedding

RENEW_DAYS = 30
"""A vector in use is given a later end at most so often."""
PIECE_ROWS = 5_000


def end_of(*, lasting: bool) -> date | None:
    """The day from which on a vector that is saved today goes; None: it is not to be saved."""
    if lasting:
        return _lasting_end()
    days: int = settings.KEEP_PREDICTED_DAYS
    return _today() + timedelta(days=days) if days else None


def renew(fingerprint: str, hashes: Sequence[bytes]) -> None:
    """Vectors that a dataset or a job uses now stay for as long as new ones."""
    end = _lasting_end()
    used = Embedding.objects.filter(model__fingerprint=fingerprint, text_hash__in=hashes)
    due = used.filter(expires__lt=end - timedelta(days=RENEW_DAYS)).order_by("pk")
    # Read first: nearly always there is nothing to write, and a look-up need not wait for writers.
    for key in due.values_list("pk", flat=True):
        Embedding.objects.filter(pk=key).update(expires=end)


def sweep() -> int:
    """Delete what has expired, in pieces; how many there were.

    Vectors from before they had an end get one.
    """
    endless = Embedding.objects.filter(expires=None)
    while keys := list(endless.values_list("pk", flat=True)[:PIECE_ROWS]):
        Embedding.objects.filter(pk__in=keys).update(expires=_lasting_end())
    deleted = 0
    expired = Embedding.objects.filter(expires__lte=_today())
    while keys := list(expired.values_list("pk", flat=True)[:PIECE_ROWS]):
        deleted += Embedding.objects.filter(pk__in=keys).delete()[0]
    return deleted


def forget_after(fingerprint: str, newest: int) -> None:
    """Delete what was saved of a model after the row `newest`: another model may have made it."""
    late = Embedding.objects.filter(model__fingerprint=fingerprint, pk__gt=newest)
    while keys := list(late.values_list("pk", flat=True)[:PIECE_ROWS]):
        Embedding.objects.filter(pk__in=keys).delete()


def newest() -> int:
    """The key of the vector that was saved last, 0 where there is none."""
    return Embedding.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _lasting_end() -> date:
    return _today() + timedelta(days=settings.KEEP_VECTORS_DAYS)


def _today() -> date:
    return timezone.now().date()
