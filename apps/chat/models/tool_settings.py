"""The stored JSON of a conversation's tools: which it offers, and when each may run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ROUNDS = 8
MAX_ROUNDS = 50


@dataclass(frozen=True)
class ToolSettings:
    """Approvals by tool name and limits. `Conversation.tools` holds its JSON."""

    use: Mapping[str, str] = field(default_factory=dict)
    """The approval (always, ask) of each tool that is not off."""
    allowed: Mapping[str, str] = field(default_factory=dict)
    """The fingerprint of the definition that somebody always allowed."""
    rounds: int = ROUNDS
    parallel: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ToolSettings":
        return cls(
            use=data.get("use") or {},
            allowed=data.get("allowed") or {},
            rounds=data.get("rounds") or ROUNDS,
            parallel=data.get("parallel", True),
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what differs from the default."""
        data: dict[str, Any] = {"use": dict(sorted(self.use.items()))} if self.use else {}
        if self.allowed:
            data["allowed"] = dict(sorted(self.allowed.items()))
        if self.rounds != ROUNDS:
            data["rounds"] = self.rounds
        if not self.parallel:
            data["parallel"] = False
        return data

    def to_public_json(self) -> dict[str, Any]:
        """Return what the API shows. Fingerprints are our own business."""
        return {name: value for name, value in self.to_json().items() if name != "allowed"}
