"""A planned server in the configuration of the programs that start or front it (pure).

YAML is written as the JSON that it contains: strings are quoted as JSON, so no path can break out.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from apps.tuning.errors import PlanError
from apps.tuning.planner.flags import Flag
from apps.tuning.planner.hardware import Kind

PORT = 8080
UNLOAD_AFTER_SECONDS = 600
# What follows belongs to one server alone, so a router or llama-swap sets it.
OF_ONE_SERVER = {"--alias", "--api-key-file"}
_FILES = {"--model", "--mmproj", "--model-draft", "--api-key-file"}
_NVIDIA = ("RTX", "T4", "L4", "L40S", "A10", "V100", "A100", "H100", "H200")


@dataclass(frozen=True, slots=True)
class PlannedServer:
    name: str
    flags: tuple[Flag, ...]
    slots: int
    slot_context: int
    embeddings: bool = False
    port: int = PORT
    aliases: tuple[str, ...] = ()
    """Other names that requests may give, where llama-swap stands in front."""


def command(server: PlannedServer, *, program: str = "llama-server") -> str:
    """The command for a shell, a flag a line."""
    lines = [shlex.join([program, "--host", "127.0.0.1", "--port", str(server.port)])]
    lines += [shlex.join(flag.words) for flag in server.flags]
    return " \\\n  ".join(lines)


def compose(server: PlannedServer, *, hardware: str, kind: Kind) -> str:
    """A service for docker-compose.yml, reachable from this machine alone."""
    nvidia = kind is Kind.GPU and hardware.startswith(_NVIDIA)
    tag = "server-cuda" if nvidia else "server-vulkan" if kind is Kind.GPU else "server"
    mounts: dict[str, None] = {}
    words = [word for flag in server.flags for word in _in_container(flag, mounts)]
    lines = [
        "services:",
        "  llama:",
        f"    image: ghcr.io/ggml-org/llama.cpp:{tag}",
        # The image itself listens on all addresses of its container, port 8080.
        "    command:",
        *(f"      - {_compose_text(word)}" for word in words),
        f'    ports: ["127.0.0.1:{server.port}:{PORT}"]',
        "    volumes:",
    ]
    for number, folder in enumerate(mounts):
        place = f"source: {_compose_text(folder)}, target: /models/{number}, read_only: true"
        lines.append(f"      - {{type: bind, {place}}}")
    if nvidia:
        lines.append("    gpus: all")
    elif kind is Kind.GPU:
        lines.append('    devices: ["/dev/dri:/dev/dri"]')
    elif kind is Kind.APPLE:
        lines.insert(0, "# Docker cannot use the GPU of an Apple computer: the command itself can.")
    return "\n".join([*lines, "    restart: unless-stopped", ""])


def _in_container(flag: Flag, mounts: dict[str, None]) -> list[str]:
    """The flag's words, with files where their folders are mounted."""
    if flag.name not in _FILES or flag.value is None:
        return flag.words
    path = PurePath(flag.value)
    folder = str(path.parent) if path.is_absolute() else f"./{path.parent}"
    mounts.setdefault(folder)
    return [flag.name, f"/models/{list(mounts).index(folder)}/{path.name}"]


def _compose_text(text: str) -> str:
    return _quoted(text.replace("$", "$$"))


def llama_swap(
    servers: Sequence[PlannedServer],
    *,
    program: str = "llama-server",
    all_fit: bool = False,
) -> str:
    """A `config.yaml`; `all_fit` keeps all models in memory together."""
    lines = ["models:"]
    for server in servers:
        words = [word for flag in _shared(server) for word in flag.words]
        start = f"{shlex.quote(program)} --host 127.0.0.1 --port ${{PORT}} "
        lines += [
            f"  {_quoted(server.name)}:",
            f"    cmd: {_quoted(start + shlex.join(words))}",
            '    proxy: "http://127.0.0.1:${PORT}"',
            f"    ttl: {UNLOAD_AFTER_SECONDS}",
            *_aliases(server),
            "    metadata:",
            f"      parallel: {server.slots}",
            f"      context: {server.slot_context}",
        ]
        if server.embeddings:
            lines.append("      embeddings: true")
    if all_fit and len(servers) > 1:
        lines += ["groups:", "  together:", "    swap: false", "    members:"]
        lines += [f"      - {_quoted(server.name)}" for server in servers]
    return "\n".join([*lines, ""])


def _aliases(server: PlannedServer) -> list[str]:
    if not server.aliases:
        return []
    return ["    aliases:", *(f"      - {_quoted(alias)}" for alias in server.aliases)]


def router_presets(servers: Iterable[PlannedServer]) -> str:
    """An INI file for `llama-server --models-preset FILE`.

    Raises:
        PlanError: a path would be cut at what begins a comment.
    """
    lines = ["version = 1"]
    for server in servers:
        lines += ["", f"[{server.name}]"]
        for flag in _shared(server):
            if set(flag.value or "") & set("#;"):
                raise PlanError(
                    f"The path {flag.value!r} cannot stand in an INI file: rename the file"
                    " without “#” and “;”."
                )
            lines.append(f"{flag.name.removeprefix('--')} = {flag.value or 'true'}")
    return "\n".join([*lines, ""])


def litellm(servers: Iterable[PlannedServer]) -> str:
    """A `config.yaml` of LiteLLM's proxy."""
    lines = ["model_list:"]
    for server in servers:
        lines += [
            f"  - model_name: {_quoted(server.name)}",
            "    litellm_params:",
            f"      model: {_quoted(f'openai/{server.name}')}",
            f"      api_base: http://127.0.0.1:{server.port}/v1",
            '      api_key: "os.environ/LLAMA_API_KEY"',
            f"      max_parallel_requests: {server.slots}",
        ]
    return "\n".join([*lines, ""])


def olla(servers: Sequence[PlannedServer]) -> str:
    """A `config.yaml` of Olla: the llama-server, router or llama-swap is one endpoint."""
    return f"""server:
  host: 127.0.0.1
  port: 40114
discovery:
  type: static
  static:
    endpoints:
      - name: {_quoted(servers[0].name)}
        url: "http://127.0.0.1:{servers[0].port}"
        type: llamacpp
        priority: 100
        check_interval: 5s
        check_timeout: 2s
  model_discovery:
    enabled: true
    interval: 5m
"""


def _shared(server: PlannedServer) -> list[Flag]:
    return [flag for flag in server.flags if flag.name not in OF_ONE_SERVER]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
