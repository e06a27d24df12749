"""Waits while Workbench downloads or starts the model server that is to answer."""

import asyncio

from apps.chat.streaming.event_log import AnswerLog
from apps.llm.errors import Unreachable
from apps.servers import services as llm
from apps.servers.models import Server, State

POLL_SECONDS = 0.5


async def wait_for_start(server: Server, log: AnswerLog) -> Server:
    """Return the server once nothing is downloaded or started; the log says how far it is.

    However long that takes: the person reads what is going on, and can press Stop.

    Raises:
        Unreachable: the download failed, or the server did not start.
    """
    reported: dict[str, str | float] = {}
    while server.state == State.LOADING and (
        server.facts.is_downloading or server.facts.is_starting
    ):
        facts = server.facts
        new: dict[str, str | float] = {"reason": facts.error}
        if facts.downloaded is not None:
            new["share"] = facts.downloaded
        if new != reported:
            reported = new
            log.add("loading", **new)
        await asyncio.sleep(POLL_SECONDS)
        server = await llm.refresh_server(server)
    if reported and server.state == State.UNREACHABLE:
        raise Unreachable(server.facts.error or "The model server failed to start. See its log.")
    return server
