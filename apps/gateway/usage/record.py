"""What one request of a program came to, as its answer shows it."""

import time
from dataclasses import dataclass, field

from apps.core.models import ApiKey
from apps.gateway.usage.reported import HEAD_BYTES, TAIL_BYTES, ReportedTokens, reported_tokens

BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class RequestRecord:
    key: ApiKey | None = None
    """None: the request is not to be counted."""
    needs_slot: bool = True
    model: str = ""
    """At its server; "" until it is known."""
    status: int | None = None
    has_failed: bool = False
    has_ended: bool = False
    waited_ms: int | None = None
    """Until it had a slot."""
    is_asked: bool = False
    """A model was asked."""
    pieces: int = 0
    """Of the answer, as it came: of a stream about one for each token."""
    _arrived: float = field(default_factory=time.perf_counter)
    _head: bytes = b""
    _tail: bytes = b""

    def start(self, model: str) -> None:
        """Note that a server is asked now. Of several times the first counts."""
        self.start_own(model)
        if self.waited_ms is None:
            self.waited_ms = round((time.perf_counter() - self._arrived) * 1000)

    def start_own(self, model: str) -> None:
        """Note that a model of the workbench itself is asked, whose wait nobody measures."""
        self.model, self.is_asked = model, True

    def add(self, data: bytes) -> None:
        """Note a piece of the answer."""
        self.pieces += 1
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._tail = data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else self._joined(data)

    def _joined(self, data: bytes) -> bytes:
        return (self._tail + data)[-TAIL_BYTES:]

    @property
    def tokens(self) -> ReportedTokens:
        if not self.needs_slot:  # the model had nothing to do
            return ReportedTokens(0, 0, 0)
        return reported_tokens(self._tail, self._head)

    def charge(self, body_bytes: int) -> int:
        """Return the tokens that count for limits: estimated where the server reported none.

        Otherwise a program that leaves before the end of each answer would have no limit.
        """
        if not self.is_asked or (self.status or 200) >= 400:
            return 0
        tokens = self.tokens
        prompt = body_bytes // BYTES_PER_TOKEN if tokens.prompt is None else tokens.prompt
        return prompt + (self.pieces if tokens.completion is None else tokens.completion)

    def counts(self) -> dict[str, int]:
        """Return what to add to the usage of its key, by the names of `Usage`'s fields."""
        found = {"requests": 1}
        if not self.has_ended and not self.has_failed:
            found["cancelled"] = 1
        elif self.has_failed or (self.status or 500) >= 400:
            found["failed"] = 1
        if self.needs_slot and self.waited_ms is not None:
            found |= {"waits": 1, "waited_ms": self.waited_ms}
        tokens = self.tokens
        for name in ("prompt", "cached", "completion"):
            if (count := getattr(tokens, name)) is not None:
                found |= {name: count, f"{name}_reports": 1}
        return found
