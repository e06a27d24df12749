"""The progress of loading a model, where its server reports it.

llama-server's router does, in the feed of its own page (`/models/sse`): the model's status, and the
share of each part (the text model, a draft model, the vision encoder) that has been read.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from apps.llm import errors
from apps.llm.client import client_for
from apps.servers.models import Kind, Server

FEED = "/models/sse"
# Weight of each part after the first: vision encoders and draft models are small.
LATER_PART = 0.1


async def loading_progress(server: Server, model: str) -> AsyncIterator[float]:
    """Yield the loaded share of a model, 0 to 1, until it is loaded or no more is reported.

    Never raises an error of the server's; yields nothing where it reports nothing.
    """
    if server.kind != Kind.ROUTER:
        return
    reported = -1.0
    with suppress(errors.LLMError):
        async with aclosing(client_for(server.endpoint).lines(FEED)) as lines:
            async for line in lines:
                status, share = parse_line(line, model)
                if status in {"loaded", "sleeping"}:
                    return
                if share is not None and share > reported:
                    reported = share
                    yield share


def parse_line(line: bytes, model: str) -> tuple[str, float | None]:
    """A model's status and loaded share in one line of the feed; ("", None) for other lines."""
    try:
        event = json.loads(line.removeprefix(b"data:"))
        data = event["data"] if event["model"] == model else {}
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
