"""Shows the download of an embedded server's model while the server does not answer yet."""

from urllib.parse import urlsplit

from django.conf import settings

from apps.runtime.download_progress import progress_file, read_progress
from apps.servers.facts.server_facts import ServerFacts
from apps.servers.models import Server, State

LOOPBACK = "127.0.0.1"


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
    facts.state, facts.error = State.LOADING, f"{progress}."
    facts.is_downloading, facts.downloaded = True, progress.amount
