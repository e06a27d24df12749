"""One request's right to a slot, and the Redis scripts that give, renew and release it."""

import asyncio
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from apps.llm.events import Usage

SCRIPTS = Path(__file__).parent


@cache
def script_source(name: str) -> str:
    return "\n".join((SCRIPTS / f"{part}.lua").read_text() for part in ("entries", name))


@dataclass(eq=False, slots=True)
class Permit:
    """One request's right to a slot."""

    name: str
    server_id: int
    claim: str
    """JSON, as in Redis."""
    person: str = ""
    holder: "asyncio.Task[Any] | None" = None
    usage: Usage | None = None
    revoked: bool = False
    """A person needed the slot: the holder has been cancelled."""
    failed: bool = False
    """The request ended with an error of the server."""
    first_token_ms: float | None = None
    """From sending the request to its first token; None: not measured."""

    def record_usage(self, usage: Usage) -> None:
        """Count what the request cost, for the server's charts."""
        self.usage = usage
