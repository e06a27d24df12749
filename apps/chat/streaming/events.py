"""The events of an answer, and the snapshot that they add up to. Pure."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

TEXT_EVENTS = frozenset({"token", "reasoning"})
END_EVENTS = frozenset({"done", "error"})
STOPPED = "stopped"  # the finish_reason of an answer that a person stopped


class StreamEvent(NamedTuple):
    """One event. `data` is JSON, encoded once when it was written."""

    id: int
    event: str
    data: str

    @property
    def is_end(self) -> bool:
        return self.event in END_EVENTS


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A tool call as events and the API show it. Its field names are the JSON keys."""

    id: int
    answer: int
    call_id: str
    round: int
    name: str
    arguments: str
    at: int
    state: str
    result: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the events of a stream add up to."""

    status: str = "queued"
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCallEvent, ...] = ()
    """Each as its last event had it."""

    def as_json(self) -> str:
        data: dict[str, Any] = {
            "status": self.status,
            "text": self.text,
            "reasoning": self.reasoning,
        }
        if self.calls:
            data["calls"] = [asdict(call) for call in self.calls]
        return compact_json(data)

    @classmethod
    def from_json(cls, text: str) -> "Snapshot":
        data = json.loads(text)
        calls = tuple(ToolCallEvent(**call) for call in data.get("calls", ()))
        return cls(data["status"], data["text"], data["reasoning"], calls)


def replay(events: Iterable[StreamEvent]) -> Snapshot:
    """Return the snapshot after these events. They begin with the first one or a checkpoint."""
    status = "queued"
    parts: dict[str, list[str]] = {"token": [], "reasoning": []}
    calls: dict[int, ToolCallEvent] = {}
    for event in events:
        match event.event:
            case "token" | "reasoning":
                parts[event.event].append(json.loads(event.data)["text"])
                status = "streaming"
            case "snapshot":
                snapshot = Snapshot.from_json(event.data)
                status = snapshot.status
                parts = {"token": [snapshot.text], "reasoning": [snapshot.reasoning]}
                calls = {call.id: call for call in snapshot.calls}
            case "tool_call" | "tool_result":
                call = ToolCallEvent(**json.loads(event.data))
                calls[call.id] = call
                status = "streaming"
            case "progress":
                status = "streaming"
            case "done":
                stopped = json.loads(event.data).get("finish_reason") == STOPPED
                status = "stopped" if stopped else "complete"
            case "error":
                status = "failed"
    text, reasoning = "".join(parts["token"]), "".join(parts["reasoning"])
    return Snapshot(status, text, reasoning, tuple(calls.values()))


def compact_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
