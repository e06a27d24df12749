"""Rows for the page about the slot files of a server, and what they have saved."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.template.defaultfilters import filesizeformat

from apps.servers.models import Server, SlotFile, SlotRestores
from apps.servers.pages.fact_rows import FactRow
from apps.servers.pages.status_text import format_duration
from apps.servers.slot_files.store import MAX_FAILURES

KEPT = "measured: by the server's answers"
RESTORED = "measured: by the cache of the next request"


@dataclass
class SlotFileSummary:
    """The slot files of one server."""

    files: int = 0
    size: int = 0
    """Bytes on its disk, those of evicted files included."""
    restores: list[SlotRestores] = field(default_factory=list)


def read_summaries(servers: Iterable[Server]) -> dict[int, SlotFileSummary]:
    """Read them by server, of those that save slots. Synchronous."""
    saving = [
        s.pk for s in servers if any(m.slot_files and not m.embeddings for m in s.model_facts)
    ]
    if not saving:
        return {}
    counted = (
        SlotFile.objects.filter(server__in=saving)
        .values("server")
        .annotate(files=Count("pk", filter=~Q(prefix="")), size=Sum("size"))
    )
    found = {pk: SlotFileSummary() for pk in saving}
    for row in counted:
        found[row["server"]] = SlotFileSummary(row["files"], row["size"])
    for restores in SlotRestores.objects.filter(server__in=saving).order_by("model", "pk"):
        found[restores.server_id].restores.append(restores)
    return found


def slot_file_rows(server: Server, summary: SlotFileSummary) -> list[FactRow]:
    if not settings.SLOT_FILES_BYTES:
        return [FactRow("Slot files", "off: WORKBENCH_SLOT_FILES_GB is 0", "the settings")]
    size, budget = filesizeformat(summary.size), filesizeformat(settings.SLOT_FILES_BYTES)
    count = "1 file" if summary.files == 1 else f"{summary.files:,} files"
    kept = f"{count}, {size} of {budget}" if summary.size else "none yet"
    rows = [FactRow("Slot files", kept, KEPT)]
    keys = {model.cache_key for model in server.model_facts}
    for restores in summary.restores:
        if restores.count:
            times = "once" if restores.count == 1 else f"{restores.count:,} times"
            saved = f"restored {times}, {format_duration(restores.seconds_saved)} saved"
            rows.append(FactRow(f"{restores.model}: slot files", saved, RESTORED))
        is_off = restores.failed_in_row >= MAX_FAILURES and restores.process == server.facts.process
        if is_off and restores.cache_key in keys:
            reason = f"off after {restores.failed_in_row} failures in a row. {restores.reason}"
            rows.append(FactRow(f"{restores.model}: slot files", reason, RESTORED))
    return rows
