"""A server that reports no slots, and whose throughput stops to grow at as many as it has.

It works on `slots` requests at once, each at `tokens_per_second`; with more in flight all of them
share what that comes to, as they do on a GPU. So the fastest width is known.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.standins.state import Model
from tests.standins.web import App, Forward, Reply, Request, Told

TOKENS_PER_CHUNK = 4


class Saturating(App):
    async def answer(self, request: Request) -> Reply | Forward | Told:
        if self.config.outage:
            return Reply(self.config.outage, f"<html><title>{self.config.outage}</title></html>")
        if request.path == "/v1/models":
            items = [
                {"id": model.id, "object": "model", "owned_by": "organization"}
                for model in self.config.models
            ]
            return Reply(200, {"object": "list", "data": items})
        model = self.memory.model(str(request.json.get("model", "")))
        if model is None or request.method != "POST":
            return Reply(404, {"error": {"message": "No such model or path."}})
        limit = self.config.refuses_above
        if limit and self.memory.in_flight[model.id] >= limit:
            error = {"message": "Too many requests at once.", "type": "requests", "code": None}
            return Reply(429, {"error": error})
        if request.path == "/v1/embeddings":
            return await self._vectors(model, request.json["input"])
        return Told(self._written(model, request.json))

    async def _vectors(self, model: Model, texts: list[str]) -> Reply:
        self.memory.begin(model)
        try:
            for _ in texts:
                await self._work(model, 1)
        finally:
            await asyncio.shield(self.memory.end(model))
        data = [{"index": at, "embedding": [1.0, float(at)]} for at in range(len(texts))]
        return Reply(200, {"object": "list", "data": data})

    async def _written(self, model: Model, question: dict[str, Any]) -> AsyncIterator[bytes]:
        tokens = int(question.get("max_completion_tokens") or question.get("max_tokens") or 16)
        if self.config.is_uneven:
            tokens -= int(question.get("seed") or 0) % (tokens // 2 + 1)
        self.memory.begin(model)
        text = f" {len(self.asked)}" * TOKENS_PER_CHUNK  # no two answers are the same
        try:
            for _ in range(0, tokens, TOKENS_PER_CHUNK):
                await self._work(model, TOKENS_PER_CHUNK)
                yield _chunk({"content": text}, None)
            usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
            yield _chunk({}, "stop")
            if self.config.reports_usage:
                yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"
        finally:
            await asyncio.shield(self.memory.end(model))

    async def _work(self, model: Model, tokens: int) -> None:
        """Take as long as these tokens take with as many requests in flight as now."""
        share = max(1.0, self.memory.in_flight[model.id] / model.slots)
        await asyncio.sleep(tokens * share / self.config.tokens_per_second)  # the work itself


def _chunk(delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
    body |= {"usage": None, "error": None}
    return b"data: " + json.dumps(body).encode() + b"\n\n"
