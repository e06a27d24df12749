"""`manage.py up` with a `llama-server` of this machine instead of the wheel."""

import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.stack import Stack
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import wait_until

PROGRAM = os.environ.get("WORKBENCH_TEST_LLAMA_SERVER", "")

pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="WORKBENCH_TEST_LLAMA_SERVER names no llama-server (docs/backends.md)"
)


def test_two_models_are_served_by_a_router_of_ours(tmp_path: Path) -> None:
    models = [write_tiny_gguf(tmp_path / f"{name}.gguf") for name in ("alpha", "beta")]
    settings = {
        "WORKBENCH_LLAMA_SERVER": PROGRAM,
        "WORKBENCH_CHAT_MODEL": ", ".join(map(str, models)),
        "WORKBENCH_CHAT_SLOTS": "3",
        "WORKBENCH_EMBED_MODEL": str(write_tiny_gguf(tmp_path / "embed.gguf", embeddings=True)),
    }
    with Stack(settings) as stack:
        assert f"Chat runs on {PROGRAM}, which computes on" in stack.said()
        key = stack.manage("create_api_key", "test").split()[-1]

        def ask(path: str, body: dict[str, Any] | None = None) -> Any:
            request = urllib.request.Request(
                f"{stack.url}/api/v1{path}",
                data=None if body is None else json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        def server() -> Any:
            return ask("/servers/1/probe", {})

        stack.wait_for_log("chat-model is ready")
        wait_until(lambda: server()["state"] == "ready", within=150)
        assert server()["kind"] == "router"
        assert sorted(model["id"] for model in server()["models"]) == ["alpha", "beta"]
        chat = ask("/conversations", {"model": "beta", "title": "Two models"})
        ask(f"/conversations/{chat['id']}/messages", {"content": "Hi", "params": {"max_tokens": 8}})

        def last() -> Any:
            return ask(f"/conversations/{chat['id']}")["messages"][-1]

        wait_until(lambda: last()["status"] == "complete", within=150)
        (beta,) = (model for model in server()["models"] if model["id"] == "beta")
        assert beta["state"] == "loaded"
