"""The stored JSON of what the prompt of an answer began with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PromptPrefix:
    """What stood before the messages, in addition to the system prompt.

    `Message.prompt_prefix` holds its JSON. A difference to the answer before explains why the
    server had to process the prompt again (`prompt.cache_loss`).
    """

    tools_hash: str = ""
    """SHA-256 of the definitions of tools, its first 16 hexadecimal digits."""
    summary: int | None = None
    pinned: tuple[int, ...] | None = None
    """Pinned messages in the place of cut ones; None if there were none."""
    front_bytes: int = 0
    """Size of the summary and the pinned messages."""
    left_out: frozenset[int] = frozenset()
    """Tool results that had to make room."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PromptPrefix":
        return cls(
            tools_hash=data.get("tools", ""),
            summary=data.get("summary"),
            pinned=tuple(data["pinned"]) if "pinned" in data else None,
            front_bytes=data.get("front", 0),
            left_out=frozenset(data.get("left_out", ())),
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what is not empty."""
        data = {
            "tools": self.tools_hash,
            "summary": self.summary,
            "pinned": None if self.pinned is None else list(self.pinned),
            "front": self.front_bytes,
            "left_out": sorted(self.left_out),
        }
        data = {name: value for name, value in data.items() if value or name == "pinned"}
        return {name: value for name, value in data.items() if value is not None}
