"""Shows the download and start of an embedded server while it does not answer yet."""

import time
from urllib.parse import urlsplit

from django.conf import settings

from apps.runtime.download_progress import progress_file, read_progress
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import Server, State

LOOPBACK = "127.0.0.1"
# After this time, a server that does not answer has not started. Loading takes longer, but
# llama.cpp answers meanwhile.
START_SECONDS = 60.0


def show_download(server: Server, facts: ServerFacts) -> None:
    """Replace "not responding" in `facts` by the progress, or by the reason why it failed."""
    address = urlsplit(server.base_url)
    is_ours = server.from_settings and address.hostname == LOOPBACK
    if facts.state != State.UNREACHABLE or not is_ours or address.port is None:
        return
    progress = read_progress(progress_file(settings.DATA_DIR, address.port))
    if progress is None:
        return
    if progress.error:
        facts.error = progress.error
        return
    if progress.started_at and time.time() - progress.started_at > START_SECONDS:
        return
    facts.state, facts.error = State.LOADING, f"{progress}."
    facts.is_starting = bool(progress.started_at)
    facts.is_downloading = not facts.is_starting
    facts.downloaded = progress.share if facts.is_downloading else None
