"""How far a model is that is being brought into memory, where its server tells.

llama-server's router does, in the feed it gives its own page (`/models/sse`): the model's status,
and of each part (the text model, a draft model, the eyes) how much of it has been read.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from apps.llm import errors
from apps.llm.client import client_for
from apps.servers.models import Kind, Server

FEED = "/models/sse"
# What a part after the first is of the whole: pictures and drafts are small beside the text model.
LATER_PART = 0.1


async def shares(server: Server, model: str) -> AsyncIterator[float]:
    """What share of a model has been loaded, 0 to 1, until it is or nothing more is told.

    Never raises an error of the server's: where it tells nothing, there is nothing.
    """
    if server.kind != Kind.ROUTER:
        return
    told = -1.0
    with suppress(errors.LLMError):
        async with aclosing(client_for(server.endpoint).lines(FEED)) as lines:
            async for line in lines:
                status, share = read(line, model)
                if status in {"loaded", "sleeping"}:
                    return
                if share is not None and share > told:
                    told = share
                    yield share


def read(line: bytes, model: str) -> tuple[str, float | None]:
    """What a line of the feed says of a model: its status, and the share that is loaded. Pure."""
    try:
        said = json.loads(line.removeprefix(b"data:"))
        data = said["data"] if said["model"] == model else {}
        status = str(data.get("status") or "")
        return status, _share(data.get("progress") or {})
    except (ValueError, KeyError, TypeError, AttributeError):  # a comment, or news of another kind
        return "", None


def _share(progress: dict[str, Any]) -> float | None:
    current = progress.get("current") or progress.get("stage")
    value = progress.get("value")
    if current is None or not isinstance(value, int | float):
        return None
    parts = list(progress.get("stages") or [current])
    place = parts.index(current) if current in parts else 0
    later = LATER_PART * (len(parts) - 1)
    before = 0.0 if place == 0 else 1 - later + LATER_PART * (place - 1)
    whole = 1 - later if place == 0 else LATER_PART
    return round(min(1.0, max(0.0, before + whole * value)), 3)
