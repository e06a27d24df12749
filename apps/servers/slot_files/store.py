"""Which slot files a server has: found by prefix, bounded in bytes, the least recently used go.

Functions here use the database and block.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone

from apps.llm.slot_files import SavedSlot
from apps.servers.models import Server, SlotFile, SlotRestores
from apps.servers.targets import Target

# In a row; after that it is left.
MAX_FAILURES = 3
GIB = 1024**3


def cache_key_of(target: Target) -> str:
    return target.server.facts_of(target.model).cache_key


def find(target: Target, prefixes: Sequence[str]) -> SlotFile | None:
    """Return the file with the longest of these beginnings, which are sorted by length."""
    found = SlotFile.objects.filter(
        server=target.server, cache_key=cache_key_of(target), prefix__in=prefixes
    )
    return max(found, key=lambda file: prefixes.index(file.prefix), default=None)


def is_off(target: Target) -> bool:
    """True if restoring has failed for this model as often as it may.

    It is tried again where a build tells that it was started anew, perhaps with other flags.
    """
    return SlotRestores.objects.filter(
        server=target.server,
        cache_key=cache_key_of(target),
        process=target.server.facts.process,
        failed_in_row__gte=MAX_FAILURES,
    ).exists()


@transaction.atomic
def reserve(target: Target, prefix: str, tokens: int, source: str = "") -> SlotFile | None:
    """Return a file to save this beginning in; None where the budget leaves no room yet.

    The least recently used file is evicted, and written over where nothing else is free.
    """
    server = Server.objects.select_for_update().get(pk=target.server.pk)
    files = list(SlotFile.objects.filter(server=server).order_by("used_at", "pk"))
    key = cache_key_of(target)
    same = [f for f in files if (f.prefix, f.cache_key) == (prefix, key)]
    file = next(iter(same or [f for f in files if not f.prefix]), None)
    needed = sum(f.size for f in files if f is not file) + _bytes_of(tokens, key, files)
    for oldest in [f for f in files if f is not file and f.prefix]:
        if needed <= settings.SLOT_FILES_BYTES:
            break
        needed -= _evict(oldest)
        if not settings.SLOT_FILES_FOLDER:
            if file is not None:
                break  # there is room when the server has emptied it
            file, needed = oldest, needed - oldest.size
    if needed > settings.SLOT_FILES_BYTES:
        return None
    if file is None:  # stored first, or a file that is never recorded would stay on the disk
        name = f"workbench-{secrets.token_hex(8)}.slot"
        file = SlotFile.objects.create(server=server, name=name, used_at=timezone.now())
    file.model, file.cache_key, file.prefix = target.model, key, prefix
    file.source, file.used_at = source, timezone.now()
    return file


def _bytes_of(tokens: int, cache_key: str, files: Sequence[SlotFile]) -> int:
    """Estimate the size of a file by those that the model has; 0 for its first."""
    known = [f for f in files if f.cache_key == cache_key and f.tokens]
    return tokens * known[-1].size // known[-1].tokens if known else 0


def _evict(file: SlotFile) -> int:
    """Free a file's name; return the bytes that are free at once."""
    file.prefix = file.source = ""
    if not settings.SLOT_FILES_FOLDER:
        file.save(update_fields=["prefix", "source"])
        return 0
    with suppress(OSError):
        Path(settings.SLOT_FILES_FOLDER, file.name).unlink(missing_ok=True)
    file.delete()
    return file.size


def record_saved(file: SlotFile, saved: SavedSlot, seconds: float | None) -> None:
    file.tokens, file.size = saved.tokens, saved.size
    file.seconds = file.seconds if seconds is None else seconds
    file.save()


def record_emptied(file: SlotFile, size: int) -> None:
    file.tokens, file.size = 0, size
    file.save(update_fields=["tokens", "size"])


def to_empty(target: Target, limit: int = 4) -> list[SlotFile]:
    """Return evicted files that still take room on the server's disk."""
    return list(SlotFile.objects.filter(server=target.server, prefix="", tokens__gt=0)[:limit])


def forget_all(target: Target) -> None:
    """Free the files of a model. One that is gone or does not fit is seldom the only one."""
    for file in SlotFile.objects.filter(server=target.server, cache_key=cache_key_of(target)):
        _evict(file)


def drop_source(source: str) -> None:
    """Free the files of something that was deleted."""
    for file in SlotFile.objects.filter(source=source):
        _evict(file)


def record_restored(target: Target, file: SlotFile, seconds_saved: float) -> None:
    SlotFile.objects.filter(pk=file.pk).update(used_at=timezone.now())
    restores = _restores_of(target)
    SlotRestores.objects.filter(pk=restores.pk).update(
        count=F("count") + 1,
        seconds_saved=F("seconds_saved") + max(0.0, seconds_saved),
        failed_in_row=0,
        reason="",
    )


def record_failed(target: Target, reason: str) -> None:
    restores = _restores_of(target)
    SlotRestores.objects.filter(pk=restores.pk).update(
        failed_in_row=F("failed_in_row") + 1,
        process=target.server.facts.process,
        reason=reason[:300],
    )


def _restores_of(target: Target) -> SlotRestores:
    restores, _ = SlotRestores.objects.get_or_create(
        server=target.server, cache_key=cache_key_of(target), defaults={"model": target.model}
    )
    return restores


def bytes_on_disk(server: Server) -> int:
    return SlotFile.objects.filter(server=server).aggregate(sum=Sum("size"))["sum"] or 0
