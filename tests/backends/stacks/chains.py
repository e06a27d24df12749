"""Chains of two: LiteLLM in front of llama-swap, nginx in front of a router."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.backends.stacks.litellm import KEY as LITELLM_KEY
from tests.backends.stacks.litellm import deployment, litellm
from tests.backends.stacks.llama_servers import KEY as SERVER_KEY
from tests.backends.stacks.llama_swaps import KEY as SWAP_KEY
from tests.backends.stacks.llama_swaps import is_old, llama_swap, swap_models
from tests.backends.stacks.routers import preset_router, slots_of
from tests.llama_process import free_port

OVER_SWAP = "LiteLLM → llama-swap"
OVER_ROUTER = "nginx → router"

NGINX = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  client_body_buffer_size 1m;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {root};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}
}}
"""


def nginx_before(upstream: str, folder: Path) -> tuple[ProgramProcess, str]:
    """Return an nginx in front of `upstream`, and its own root. Skips the test without nginx."""
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, root=upstream))
    nginx = ProgramProcess(
        [command("nginx"), "-p", str(folder), "-c", str(config), "-e", "stderr"],
        ready_url=f"{root}/health",
        folder=folder,
        name="nginx",
    )
    return nginx, root


@contextmanager
def _litellm_over_swap(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    swap, swap_root = llama_swap(folder, {"models": swap_models(models)})
    url = f"{swap_root}/v1"
    names = ["alpha", "beta", "broken"]
    deployments = [deployment(name, url, SWAP_KEY, model=name) for name in names]
    if not is_old():
        mode = {"mode": "embedding"}
        deployments.append(deployment("embed", url, SWAP_KEY, model="embed", model_info=mode))
    process, root = litellm(folder, deployments)
    with swap, process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            OVER_SWAP,
            "litellm",
            f"{root}/v1",
            LITELLM_KEY,
            other="beta",
            embeddings=None if is_old() else "embed",
            broken="broken",
            stated={"parallel": 2},
            slots=2,
            relay=relay,
            serving=[
                ServingProcess(
                    swap_root, SWAP_KEY, "/slots" if is_old() else "/upstream/alpha/slots"
                )
            ],
            victim=swap,
            gone_code="backend_gone",
        )


@contextmanager
def _nginx_over_router(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    router, router_root = preset_router(folder, models)
    nginx, root = nginx_before(router_root, folder)
    with router, nginx, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            OVER_ROUTER,
            "router",
            f"{root}/v1",
            SERVER_KEY,
            other="beta",
            embeddings="embed",
            broken="broken",
            one_at_a_time=True,
            slots=2,
            context=4096,
            unified=False,
            relay=relay,
            serving=[slots_of(router_root, "alpha")],
            victim=router,
            gone_code="backend_gone",
        )


STACKS = (
    Stack(OVER_SWAP, ("litellm", "llama-swap", "llama-server"), _litellm_over_swap),
    Stack(OVER_ROUTER, ("nginx", "llama-server"), _nginx_over_router),
)
