"""The progress of loading or downloading a model, where its server reports it.

llama-server's router does, in the feed of its own page (`/models/sse`): the model's status, the
share of each part (the text model, a draft model, the vision encoder) that has been read, and the
bytes of each file that has been downloaded.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from apps.llm import errors
from apps.llm.client import client_for
from apps.servers.kinds.listing import number
from apps.servers.loading.load_model import Action
from apps.servers.models import Kind, Server

FEED = "/models/sse"
# Weight of each part after the first: vision encoders and draft models are small.
LATER_PART = 0.1
ENDED = {"loaded", "sleeping", "download_finished", "download_failed"}


def loading_progress(server: Server, model: str) -> AsyncIterator[float]:
    """Yield the loaded share of a model, 0 to 1, until it is loaded or no more is reported.

    Never raises an error of the server's; yields nothing where it reports nothing.
    """
    return progress_of(server, model, Action.LOAD)


async def progress_of(server: Server, model: str, action: Action) -> AsyncGenerator[float, None]:
    """Like `loading_progress`, of any action: yields nothing but for a load or a download."""
    if server.kind != Kind.ROUTER or action not in {Action.LOAD, Action.DOWNLOAD}:
        return
    reported = -1.0
    with suppress(errors.LLMError):
        async with aclosing(client_for(server.endpoint).lines(FEED)) as lines:
            async for line in lines:
                status, share = parse_line(line, model)
                if status in ENDED:
                    return
                if share is not None and share > reported:
                    reported = share
                    yield share


def parse_line(line: bytes, model: str) -> tuple[str, float | None]:
    """A model's status and its share in one line of the feed; ("", None) for other lines."""
    try:
        event = json.loads(line.removeprefix(b"data:"))
        if event["model"] != model:
            return "", None
        data = event.get("data") or {}
        match str(event.get("event") or ""):
            case "download_finished" | "download_failed" as ended:
                return ended, None
            case "download_progress":
                return "downloading", downloaded_share(data.get("progress", data))
        return str(data.get("status") or ""), _share(data.get("progress") or {})
    except (ValueError, KeyError, TypeError, AttributeError):  # a comment, or news of another kind
        return "", None
    except (OverflowError, RecursionError):  # JSON that no router writes
        return "", None


def downloaded_share(files: dict[str, Any]) -> float | None:
    """The share of all files of a download by their bytes; None while no size is known."""
    done = sum(number(file.get("done")) or 0 for file in files.values())
    total = sum(number(file.get("total")) or 0 for file in files.values())
    return round(min(1.0, done / total), 3) if total else None


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
