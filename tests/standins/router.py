"""llama-server's router mode (llama.cpp's tools/server/server-models.cpp)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tests.standins.state import LoadFailed, Model
from tests.standins.web import App, Forward, Reply, Request, Told, sized


def error(code: int, kind: str, message: str) -> Reply:
    return Reply(code, {"error": {"code": code, "message": message, "type": kind}})


def bad(message: str) -> Reply:
    return error(400, "invalid_request_error", message)


class Router(App):
    at_once = 4

    async def answer(self, request: Request) -> Reply | Forward | Told:
        if self.config.api_key and request.key != self.config.api_key and request.path != "/health":
            return error(401, "authentication_error", "Invalid API Key")
        match request.method, request.path:
            case "GET", "/health":
                return Reply(200, {"status": "ok"})
            case "GET", "/v1/models" | "/models":
                return Reply(
                    200, {"object": "list", "data": [self._item(m) for m in self.config.models]}
                )
            case "GET", "/models/sse":
                return Told(self._news())
            case "GET", "/props" if "model" not in request.query:
                return Reply(200, ROLE | {"max_instances": self.memory.at_once})
            case "POST", "/models":
                return self._download(request.json.get("model", ""))
            case "DELETE", "/models":
                return self._delete(request.query.get("model", ""))
            case "POST", "/models/load":
                return self._load(request.json.get("model", ""))
            case "POST", "/models/unload":
                return self._unload(request.json.get("model", ""))
            case "GET", "/props" | "/slots" | "/metrics":
                return await self._pass_on(request, request.query.get("model", ""))
            case "POST", _:
                return await self._pass_on(request, str(request.json.get("model", "")))
        return error(404, "not_found_error", "File Not Found")

    async def _pass_on(self, request: Request, name: str) -> Reply | Forward:
        if not name:
            return bad("model name is missing from the request")
        model = self.memory.model(name)
        if model is None:
            return bad(f"model '{name}' not found")
        state = self.memory.state[model.id]
        if request.query.get("autoload") in {"false", "0"}:
            if state not in {"loaded", "sleeping"}:
                return bad("model is not loaded")
            if request.path == "/slots":  # the process wakes for it
                self.memory.state[model.id] = "loaded"
        else:
            try:
                await self.memory.ensure(model, request.path)
            except LoadFailed:
                return error(500, "server_error", f"model name={model.id} failed to load")
        return Forward(
            request.path, model if request.method == "POST" else None, change=sized(model)
        )

    def _download(self, name: str) -> Reply:
        if self.memory.model(name):
            return bad(f"model '{name}' already exists")
        model = Model(name, downloaded=True)
        self.config.models.append(model)
        self.memory.state[name] = "downloading"
        self._downloading = asyncio.create_task(self._download_now(model))
        return Reply(200, {"success": True})

    async def _download_now(self, model: Model) -> None:
        await asyncio.sleep(self.config.load_seconds)  # a download takes its time
        if self.memory.state[model.id] == "downloading" and model.id in HUB:
            self.memory.state[model.id] = "unloaded"
        else:
            self.config.models.remove(model)

    def _delete(self, name: str) -> Reply:
        model = self.memory.model(name)
        if model is None or not model.downloaded:
            return bad(f"model name={name} is not removable (not from cache)")
        self.config.models.remove(model)
        return Reply(200, {"success": True})

    def _load(self, name: str) -> Reply:
        model = self.memory.model(name)
        if model is None:
            return error(404, "not_found_error", "model is not found")
        if self.memory.state[model.id] in {"loaded", "sleeping", "loading"}:
            return bad("model is already running")
        self._loading = asyncio.create_task(self._load_now(model))
        return Reply(200, {"success": True})

    async def _load_now(self, model: Model) -> None:
        with suppress(LoadFailed):  # its status says so
            await self.memory.ensure(model, "/models/load")

    async def _news(self) -> AsyncIterator[bytes]:
        """What happens to models from now on, as the router tells its own page."""
        known = dict(self.memory.state)
        share = 0.0
        while True:
            for name, state in self.memory.state.items():
                if state == "loading" and share < 1:
                    share = min(1.0, share + 0.25)
                    yield news(name, state, share)
                elif state != known.get(name):
                    share = 0.0
                    yield news(name, state)
            known = dict(self.memory.state)
            yield b": ping\n\n"
            await asyncio.sleep(min(self.config.load_seconds, 1) / 8)  # a ping now and then

    def gone(self, reason: str) -> Reply:
        return Reply(500, f"proxy error: {reason}")

    def _unload(self, name: str) -> Reply:
        model = self.memory.model(name)
        if model is None:
            return bad("model is not found")
        if self.memory.state[model.id] not in {"loaded", "sleeping", "loading", "downloading"}:
            return bad("model is not running")
        self.memory.unload(model)
        return Reply(200, {"success": True})

    def _item(self, model: Model) -> dict[str, Any]:
        state = self.memory.state[model.id]
        running = state in {"loaded", "sleeping", "loading"}
        status: dict[str, Any] = {
            "value": "unloaded" if state == "failed" else state,
            "args": [
                *("/usr/local/bin/llama-server", "--host", "127.0.0.1", "--port", "40001"),
                *("--alias", model.id, "--parallel", str(model.slots)),
                *("--ctx-size", str(model.context * model.slots)),
                *(["--embeddings"] if model.embeddings else []),
            ]
            if running
            else [],
            "preset": f"[{model.id}]\nmodel = /models/{model.id}.gguf\n",
        }
        if state == "failed":
            status |= {"failed": True, "exit_code": 1}
        item = {
            "id": model.id,
            "aliases": model.aliases,
            "tags": [],
            "object": "model",
            "owned_by": "llamacpp",
            "created": 0,
            "status": status,
            "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
            "source": "cache" if model.downloaded else "models_dir",
            "can_remove": model.downloaded,
        }
        if state in {"loaded", "sleeping"}:
            item["meta"] = {
                "n_ctx": model.context * model.slots,
                "n_ctx_train": 32768,
                "n_embd": 64,
                "n_params": 100000,
                "size": 400000,
            }
        return item


def news(model: str, status: str, share: float | None = None) -> bytes:
    data: dict[str, Any] = {"status": status}
    if share is not None:
        stages = ["text_model", "mmproj_model"]
        data["progress"] = {"stages": stages, "current": stages[0], "value": share}
    said = {"model": model, "event": "status_change", "data": data}
    return f"data: {json.dumps(said)}\n\n".encode()


HUB = {"alice/tiny-GGUF:Q8_0"}  # what there is to download

ROLE = {
    "role": "router",
    "max_instances": 4,
    "models_autoload": True,
    "model_alias": "llama-server",
    "model_path": "none",
    "default_generation_settings": {"params": None, "n_ctx": 0},
    "build_info": "b11549-0",
}
