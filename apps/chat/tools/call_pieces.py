"""Tool calls put together from the pieces in which a server streams them. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from apps.chat.prompt.messages import PromptCall
from apps.core.text.storable import to_storable


class CallAssembler:
    """Collects the calls of one round.

    assembler = CallAssembler()
    assembler.add({"index": 0, "id": "a", "function": {"name": "add", "arguments": '{"x"'}})
    assembler.add({"index": 0, "function": {"arguments": ": 1}"}})
    assembler.take(1)
    """

    def __init__(self) -> None:
        self._calls: dict[Any, dict[str, str]] = {}
        self._current: Any = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add a piece: `index`, `id` and name in the first one, and a part of the arguments."""
        function = delta.get("function") or {}
        key = delta.get("index", self._current)
        known = self._calls.get(key)
        # Some proxies give every call the same index: another ID is another call.
        if known is not None and delta.get("id") and known["id"] not in ("", delta["id"]):
            key, known = delta["id"], None
        if known is None:
            known = self._calls[key] = {"id": "", "name": "", "arguments": ""}
        self._current = key
        known["id"] = known["id"] or str(delta.get("id") or "")
        known["name"] += str(function.get("name") or "")
        piece = function.get("arguments") or ""
        known["arguments"] += piece if isinstance(piece, str) else json.dumps(piece)

    def take(self, round_number: int) -> list[PromptCall]:
        """Return the calls, each with an ID, and start over."""
        calls, self._calls, self._current = list(self._calls.values()), {}, None
        return [
            PromptCall(
                to_storable(call["id"])[:200] or f"call_{round_number}_{number}",
                to_storable(call["name"])[:200],
                to_storable(call["arguments"]),
            )
            for number, call in enumerate(calls, start=1)
        ]
