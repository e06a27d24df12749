"""llama-swap (mostlygeek/llama-swap v250)."""

from typing import Any
from urllib.parse import unquote

from tests.standins.state import LoadFailed, Model
from tests.standins.web import App, Forward, Reply, Request, sized

# What it passes on by the model in the body; all else only under /upstream/MODEL/.
PASSED_ON = {
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/rerank",
    "/infill",
}
STATES = {"loaded": "ready", "loading": "starting", "sleeping": "ready"}


def error(status: int, message: str, kind: str, code: str = "", **headers: str) -> Reply:
    inner = {"message": message, "type": kind, "param": None, "code": code}
    return Reply(status, {"src": "llama-swap", "error": inner}, headers)


class LlamaSwap(App):
    at_once = 1

    async def answer(self, request: Request) -> Reply | Forward:
        if request.path == "/health":
            return Reply(200, "OK")
        if self.config.api_key and request.key != self.config.api_key:
            return error(401, "unauthorized: invalid or missing API key", "authentication_error")
        match request.method, request.path:
            case "GET", "/v1/models":
                items = [self._item(m) for m in sorted(self.config.models, key=lambda m: m.id)]
                return Reply(200, {"object": "list", "data": items})
            case "GET", "/running":
                running = [self._running(m) for m in self.config.models]
                return Reply(200, {"running": [found for found in running if found]})
            case "GET", "/props" if "model" in request.query:
                return await self._pass_on(request, request.query["model"], request.path)
        if request.path.startswith("/upstream/"):
            return await self._upstream(request)
        if request.path.startswith("/api/models/unload/"):
            return self._unload(unquote(request.path.removeprefix("/api/models/unload/")))
        if request.path in PASSED_ON:
            return await self._pass_on(request, str(request.json.get("model", "")), request.path)
        return error(404, "no model id could be identified", "not_found_error")

    async def _upstream(self, request: Request) -> Reply | Forward:
        rest = request.path.removeprefix("/upstream/")
        for model in self.config.models:
            for name in (model.id, *model.aliases):
                if rest.startswith(f"{name}/"):
                    query = f"?{request.raw_query}" if request.raw_query else ""
                    return await self._pass_on(request, name, rest.removeprefix(name) + query)
        return error(404, "model not found", "not_found_error")

    async def _pass_on(self, request: Request, name: str, path: str) -> Reply | Forward:
        model = self.memory.model(name)
        if model is None:
            return error(
                404, "no router for requested model", "invalid_request_error", "model_not_found"
            )
        waiting = self._waiting = getattr(self, "_waiting", {})
        taken = waiting.get(model.id, 0) + self.memory.in_flight[model.id]
        if taken >= self.config.concurrency_limit:
            headers = {"retry-after": "1"}
            return error(
                429, "Too many requests", "rate_limit_error", "concurrency_limit", **headers
            )
        waiting[model.id] = waiting.get(model.id, 0) + 1
        try:
            await self.memory.ensure(model, request.path)
        except LoadFailed:
            self.memory.unload(model)
            reason = "unspecific error: upstream command exited prematurely"
            return error(500, reason, "server_error", "internal_error")
        finally:
            waiting[model.id] -= 1
        return Forward(path, model, change=sized(model))

    def _unload(self, name: str) -> Reply:
        model = self.memory.model(name)
        if model is None:
            return error(404, "model not found", "not_found_error")
        self.memory.unload(model)
        return Reply(200, "OK")

    def _item(self, model: Model) -> dict[str, Any]:
        loaded = self.memory.state[model.id] in STATES
        item: dict[str, Any] = {
            "id": model.id,
            "object": "model",
            "created": 0,
            "owned_by": "llama-swap",
            "status": {"value": "loaded" if loaded else "unloaded"},
        }
        if model.metadata:
            item["meta"] = {"llamaswap": model.metadata}
        return item

    def _running(self, model: Model) -> dict[str, Any] | None:
        state = STATES.get(self.memory.state[model.id])
        if state is None or model.metadata.get("peerID"):
            return None
        command = model.command or (
            f"llama-server --port 5801 -m /models/{model.id}.gguf \\\n"
            f"  -np {model.slots} -c {model.context * model.slots} --api-key not-for-you"
            + (" --embeddings" if model.embeddings else "")
        )
        return {
            "model": model.id,
            "state": state,
            "cmd": command,
            "proxy": "http://localhost:5801",
            "ttl": model.ttl,
            "name": "",
            "description": "",
        }
