"""What the events of an answer say, and what they say together. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

SPOKEN = frozenset({"token", "reasoning"})
ENDS = frozenset({"done", "error"})
STOPPED = "stopped"  # the finish_reason of an answer that a person stopped


class Entry(NamedTuple):
    """One event. `data` is JSON, made once when it was written."""

    id: int
    event: str
    data: str

    @property
    def is_end(self) -> bool:
        return self.event in ENDS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a stream's entries say together."""

    status: str = "queued"
    text: str = ""
    reasoning: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    """Of tools, as their last events said."""

    def as_json(self) -> str:
        said = {"status": self.status, "text": self.text, "reasoning": self.reasoning}
        return as_json(said | {"calls": self.calls} if self.calls else said)


def fold(entries: Iterable[Entry]) -> Snapshot:
    """Puts the text together from entries that begin with the first one or a checkpoint."""
    status = "queued"
    parts: dict[str, list[str]] = {"token": [], "reasoning": []}
    calls: dict[int, dict[str, Any]] = {}
    for entry in entries:
        match entry.event:
            case "token" | "reasoning":
                parts[entry.event].append(json.loads(entry.data)["text"])
                status = "streaming"
            case "snapshot":
                data = json.loads(entry.data)
                status = data["status"]
                parts = {"token": [data["text"]], "reasoning": [data["reasoning"]]}
                calls = {call["id"]: call for call in data.get("calls", ())}
            case "tool_call" | "tool_result":
                data = json.loads(entry.data)
                calls[data["id"]] = data
                status = "streaming"
            case "progress":
                status = "streaming"
            case "done":
                stopped = json.loads(entry.data).get("finish_reason") == STOPPED
                status = "stopped" if stopped else "complete"
            case "error":
                status = "failed"
    text, reasoning = "".join(parts["token"]), "".join(parts["reasoning"])
    return Snapshot(status, text, reasoning, tuple(calls.values()))


def as_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
