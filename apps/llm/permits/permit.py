"""One request's right to a slot, and the Redis scripts that give, renew and release it."""

import asyncio
import json
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from apps.llm.events import Usage
from apps.llm.permits.terms import Lane, SlotRequest, SlotTerms

SCRIPTS = Path(__file__).parent / "scripts"


@cache
def script_source(name: str) -> str:
    parts = ("entries", "queue", "models", name) if name == "acquire" else ("entries", name)
    return "\n".join((SCRIPTS / f"{part}.lua").read_text() for part in parts)


@dataclass(eq=False, slots=True)
class Permit:
    """One request's right to a slot."""

    name: str
    server_id: int
    claim: str
    """JSON, as in Redis."""
    person: str = ""
    waits: bool = False
    """In the lane IDLE: it waits for an idle slot."""
    holder: "asyncio.Task[Any] | None" = None
    usage: Usage | None = None
    is_only_thought: bool | None = None
    """The answer used up its max tokens before its thought ended; None: not known."""
    revoked: bool = False
    """A person needed the slot: the holder has been cancelled."""
    failed: bool = False
    """The request ended with an error of the server."""
    cut_off_after: float | None = None
    """Seconds after which something on the way ended the request; None: nothing did."""
    is_prompt_cut: bool = False
    """The prompt lacks earlier messages, so that it fits."""
    too_long_tokens: int | None = None
    """Tokens of a prompt that the server refused as too long, 0 if it did not say; None: it did
    not refuse it."""
    first_token_ms: float | None = None
    """From sending the request to its first token; None: not measured."""

    def record_usage(self, usage: Usage, *, is_only_thought: bool | None = None) -> None:
        """Count what the request cost, for the server's charts."""
        self.usage, self.is_only_thought = usage, is_only_thought


def new_permit(terms: SlotTerms, request: SlotRequest) -> Permit:
    """Return a permit that is still to be acquired."""
    person, tokens = request.get("person"), request.get("tokens", 0)
    person_name = str(person or "somebody") if request["lane"] is Lane.INTERACTIVE else ""
    name = uuid.uuid4().hex
    claim = {
        "label": request.get("label", ""),
        "owner": request.get("owner") or person or 0,
        "share": request.get("share", ""),
        "prefix": request.get("prefix", ""),
        "request": request.get("request") or name,
        "waits": request.get("waits", False),
        "loses_work": request.get("loses_work", False),
        "lane": request["lane"],
        "scope": terms.scope,
        "model": terms.model,
        "person": person_name,
        "tokens": min(tokens, terms.pool) if terms.pool else tokens,
    }
    return Permit(
        name, terms.server_id, json.dumps(claim), person_name, request.get("waits", False)
    )
