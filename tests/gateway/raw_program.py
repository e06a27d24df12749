"""A program whose connection can be closed at any moment."""

import asyncio
import json
from typing import Any

LONG = {
    "messages": [{"role": "user", "content": "Say much."}],
    "max_tokens": 3000,
    "ignore_eos": True,
    "seed": 5,
}


class Program:
    """One request over a connection that can be closed at any moment."""

    def __init__(
        self,
        token: str,
        body: dict[str, Any],
        *,
        reads_on: bool = True,
        leaves_at_the_end: bool = False,
    ) -> None:
        """
        Args:
            reads_on: False: it takes no more than the first piece, so its request stays in flight.
        """
        self._reads_on = reads_on
        self.sent: list[dict[str, Any]] = []
        self.has_answer = asyncio.Event()
        self._left = asyncio.Event()
        self._leaves_at_the_end = leaves_at_the_end
        self._body: bytes | None = json.dumps(body).encode()
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "headers": [(b"authorization", f"Bearer {token}".encode())],
        }

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.has_answer.set()
            if not self._reads_on:
                await asyncio.Event().wait()
            if self._leaves_at_the_end and not message.get("more_body"):
                self.leave()
                for _ in range(10):
                    await asyncio.sleep(0)  # as where the socket takes no more for a moment

    def leave(self) -> None:
        self._left.set()
