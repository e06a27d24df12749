"""What another room finds wrong with servers without asking them; it registers when it starts."""

import time
from collections.abc import Callable, Mapping, Sequence

from apps.servers.models import Server

Findings = Mapping[int, Sequence[str]]
"""Sentences by the primary key of a server; a server without findings is left out."""
FindingsReader = Callable[[Sequence[Server]], Findings]
# The page is asked for every two seconds by each viewer, and findings change in hours.
REMEMBER_SECONDS = 30

_readers: list[FindingsReader] = []
_read: dict[tuple[object, ...], Findings] = {}


def register_findings(reader: FindingsReader) -> None:
    """Set the reader of findings. It blocks, and sends no request to a server."""
    _readers[:] = [reader]


def read_findings(servers: Sequence[Server]) -> Findings:
    """Return what is wrong with the servers, at most half a minute old. Blocks."""
    if not _readers:
        return {}
    period = time.monotonic() // REMEMBER_SECONDS
    key = (period, *((server.pk, server.base_url) for server in servers))
    if key not in _read:
        _read.clear()
        _read[key] = _readers[0](servers)
    return _read[key]
