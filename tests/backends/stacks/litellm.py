"""LiteLLM's proxy in front of llama-servers: chat, embeddings, limits and fallbacks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.backends.stacks.llama_servers import KEY as SERVER_KEY
from tests.backends.stacks.llama_servers import chat_server, embedding_server
from tests.llama_process import free_port

NAME = "LiteLLM"
KEY = "sk-" + "x7Kq9" * 6  # it refuses to start with a weak one
LIMITED_RPM = 2


def deployment(name: str, base_url: str, key: str, *, model: str, **more: Any) -> dict[str, Any]:
    return {
        "model_name": name,
        "litellm_params": {"model": f"openai/{model}", "api_base": base_url, "api_key": key}
        | more.pop("params", {}),
        **more,
    }


def litellm(folder: Path, deployments: Sequence[Mapping[str, Any]]) -> tuple[ProgramProcess, str]:
    port = free_port()
    config = {
        "model_list": deployments,
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {
            "num_retries": 0,
            "fallbacks": [{"fragile": ["alpha"]}],
            "optional_pre_call_checks": ["enforce_model_rate_limits"],
        },
        "general_settings": {"master_key": KEY},
    }
    file = folder / "litellm.yaml"
    file.write_text(json.dumps(config))
    process = ProgramProcess(
        [command("litellm"), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)],
        ready_url=f"http://127.0.0.1:{port}/health/liveliness",
        folder=folder,
        name="litellm",
        environment={
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_PROXY": "127.0.0.1",
            "DISABLE_AIOHTTP_TRANSPORT": "True",  # else it closes a stopped stream seconds later
        },
    )
    return process, f"http://127.0.0.1:{port}"


@contextmanager
def _proxy(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    chat, chat_root = chat_server(folder, models, "-np", "2", "-c", "8192", "--api-key", SERVER_KEY)
    embed, embed_root = embedding_server(folder, models, "--api-key", SERVER_KEY)
    chat_url, nowhere = f"{chat_root}/v1", f"http://127.0.0.1:{free_port()}/v1"
    deployments = [
        deployment("alpha", chat_url, SERVER_KEY, model="alpha"),
        deployment("beta", chat_url, SERVER_KEY, model="alpha"),
        deployment("limited", chat_url, SERVER_KEY, model="alpha", params={"rpm": LIMITED_RPM}),
        deployment("fragile", nowhere, "x", model="alpha"),
        deployment("nowhere", nowhere, "x", model="alpha"),
        deployment(
            "embed",
            f"{embed_root}/v1",
            SERVER_KEY,
            model="embed",
            model_info={"mode": "embedding", "max_input_tokens": 2048},
        ),
    ]
    process, root = litellm(folder, deployments)
    with chat, embed, process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            NAME,
            "litellm",
            f"{root}/v1",
            KEY,
            other="beta",
            embeddings="embed",
            stated={"parallel": 2},
            slots=2,
            relay=relay,
            serving=[ServingProcess(chat_root, SERVER_KEY)],
            victim=chat,
            gone_code="backend_gone",
        )


STACKS = (Stack(NAME, ("litellm", "llama-server"), _proxy),)
