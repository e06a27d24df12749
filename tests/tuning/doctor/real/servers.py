"""Real llama-servers for the doctor."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.servers.models import Server, Use
from apps.servers.services import set_default
from tests.backends.stacks.llama_servers import KEY, llama_server
from tests.llama_process import free_port

SHOWN = ("--metrics", "--api-key", KEY)
HEALTHY = ("-np", "4", "-c", "16384", *SHOWN)
EMBEDDING = ("--embeddings", "-np", "2", "-c", "4096", "-b", "2048", "-ub", "2048", *SHOWN)
CLOCK = "clock.jinja"
DRAFT = "draft.gguf"


@contextmanager
def running(
    models: Path, folder: Path, model: str, flags: tuple[str, ...], port: int = 0
) -> Iterator[str]:
    """A llama-server with a model of ours; its base URL."""
    placed = tuple(str(models / flag) if flag in {CLOCK, DRAFT} else flag for flag in flags)
    file = str(models / f"{model}.gguf")
    process, root = llama_server(
        folder, "-m", file, "--alias", model, *placed, port=port or free_port()
    )
    with process:
        yield f"{root}/v1"


def add(url: str, *, key: str = KEY, use: Use = Use.GENERATION) -> Server:
    server = Server(name="Tested", base_url=url)
    server.set_key(key)
    server.save()
    set_default(server, use)
    return server
