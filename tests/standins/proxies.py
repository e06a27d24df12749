"""Olla (v0.0.28) and LiteLLM (1.109): they pass on, and hide what is behind them."""

import json
import time
from typing import Any

from tests.standins.web import App, Forward, Reply, Request

OLLA = "/olla/openai"
BALANCER = "/olla/proxy"


class Olla(App):
    """Requests per minute and address are limited, and the wait for the first byte."""

    async def answer(self, request: Request) -> Reply | Forward:
        if request.path == "/internal/health":
            return Reply(200, {"status": "healthy"})
        refuses = self.config.refuses and request.method == "POST"
        if wait := 0.5 if refuses else self._over_the_limit():
            return Reply(429, "Too Many Requests\n", {"retry-after": str(int(wait) + 1)})
        path = request.path.replace(BALANCER, OLLA, 1)
        if path == f"{OLLA}/v1/models":
            names = [m.id for m in self.config.models]
            items = [{"id": n, "object": "model", "created": 0, "owned_by": "olla"} for n in names]
            return Reply(200, {"object": "list", "data": items})
        if request.method == "POST" and path.startswith(f"{OLLA}/v1/"):
            model = self.memory.model(str(request.json.get("model", "")))
            if model is None:
                return Reply(404, "No openai endpoints available\n")
            headers = {"x-olla-endpoint": "gpu", "x-olla-backend-type": "llamacpp"}
            return Forward(path.removeprefix(OLLA), model, headers)
        return Reply(404, "404 page not found\n")

    def gone(self, reason: str) -> Reply:
        return Reply(502, f"Proxy error: all endpoints failed: {reason}\n")

    def _over_the_limit(self) -> float:
        """Seconds to wait: a bucket of `burst` that fills up at the rate."""
        rate, now = self.config.rate_per_minute / 60, time.monotonic()
        left, at = getattr(self, "_bucket", (float(self.config.burst), now))
        left = min(self.config.burst, left + (now - at) * rate)
        if left < 1:
            self._bucket = (left, now)
            return (1 - left) / rate
        self._bucket = (left - 1, now)
        return 0.0


class LiteLLM(App):
    """Drops `timings` and progress, and words every error in its own way."""

    async def answer(self, request: Request) -> Reply | Forward:
        if request.path in {"/health/liveliness", "/health/liveness"}:
            return Reply(200, '"I\'m alive!"', {"content-type": "application/json"})
        if self.config.api_key and request.key != self.config.api_key:
            shown = f"{request.key[:3]}...{request.key[-4:]}"
            return failed(
                401, f"Authentication Error, Invalid proxy server token passed. Received = {shown}"
            )
        match request.method, request.path:
            case "GET", "/v1/models" | "/models":
                names = [m.id for m in self.config.models]
                items = [{"id": n, "object": "model", "owned_by": "openai"} for n in names]
                return Reply(200, {"object": "list", "data": items})
            case "GET", "/v1/model/info" | "/model/info":
                data = [{"model_name": m.id, "model_info": m.info} for m in self.config.models]
                return Reply(200, {"data": data})
            case "GET", "/health":  # asks every model for an answer
                names = [m.id for m in self.config.models]
                self.memory.loads += [{"model": n, "path": "/health"} for n in names]
                return Reply(200, {"healthy_endpoints": []})
            case "POST", "/v1/chat/completions" | "/v1/embeddings":
                name = str(request.json.get("model", ""))
                model = self.memory.model(name)
                if model is None:
                    return failed(
                        400, f"{request.path}: Invalid model name passed in model={name}."
                    )
                return Forward(request.path, model, line=stripped, error=worded)
        return Reply(404, {"detail": "Not Found"})

    def gone(self, reason: str) -> Reply:
        return failed(
            500,
            "litellm.InternalServerError: InternalServerError: OpenAIException - Connection "
            "error.. Received Model Group=m\nAvailable Model Group Fallbacks=None",
        )


def failed(code: int, message: str) -> Reply:
    error = {"message": message, "type": None, "param": None, "code": str(code)}
    return Reply(code, {"error": error})


def worded(status: int, body: dict[str, Any]) -> Any:
    message = body.get("error", {}).get("message", "")
    return failed(status, f"litellm.BadRequestError: OpenAIException - {message}").body


def stripped(line: bytes) -> bytes:
    if not line.startswith(b"data: {"):
        return line
    data = json.loads(line[6:])
    data.pop("timings", None)
    data.pop("prompt_progress", None)
    if data.get("usage") and not data.get("choices"):
        data["choices"] = [{"index": 0, "delta": {}, "finish_reason": None}]
    return b"data: " + json.dumps(data).encode()
