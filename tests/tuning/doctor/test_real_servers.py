"""`manage.py doctor` against real llama-servers: each with one fault, and healthy ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gguf
import pytest

from apps.servers.models import Server, Use
from apps.servers.services import set_default
from tests.backends.stacks.llama_servers import KEY, llama_server
from tests.llama_process import free_port
from tests.thinking_templates import DEEPSEEK_R1, QWEN
from tests.tiny_gguf import CHAT_TEMPLATE, TOOL_TEMPLATE, write_tiny_gguf
from tests.tuning.doctor.command import doctor

pytestmark = pytest.mark.django_db(transaction=True)

SHOWN = ("--metrics", "--api-key", KEY)
HEALTHY = ("-np", "4", "-c", "16384", *SHOWN)
EMBEDDING = ("--embeddings", "-np", "2", "-c", "4096", "-b", "2048", "-ub", "2048", *SHOWN)
CLOCK = "clock.jinja"


@dataclass(frozen=True)
class Fault:
    """A server with one deliberate fault."""

    code: str
    flags: tuple[str, ...]
    model: str = "chat"
    said: str = ""
    key: str = KEY


FAULTS = (
    Fault("small-context", ("-np", "8", "-c", "2048", *SHOWN), said="8 slots of 256 tokens"),
    Fault("prompt-cache", ("--no-cache-prompt", *HEALTHY), said="instead of"),
    Fault(
        "moving-template",
        ("--chat-template-file", CLOCK, *HEALTHY),
        said="characters the first",
    ),
    Fault("no-tools", HEALTHY, model="without-tools", said="supports_tools: false"),
    Fault("thinks-anyway", HEALTHY, model="always-thinks", said="All 32 tokens"),
    Fault("no-metrics", ("-np", "4", "-c", "16384", "--api-key", KEY), said="endpoint_metrics"),
    Fault("no-slots", ("--no-slots", *HEALTHY), said="endpoint_slots"),
    Fault("no-key", ("-np", "4", "-c", "16384", "--metrics"), said="without a key", key=""),
    Fault("one-slot", ("-np", "1", "-c", "4096", *SHOWN), said="-np 4 -c 16384"),
    Fault("not-normalised", (*EMBEDDING, "--embd-normalize", "-1"), "embed", "instead of 1"),
    Fault("no-pooling", (*EMBEDDING, "--pooling", "none"), "embed", "Pooling type 'none'"),
    Fault("small-batch", (*EMBEDDING, "-ub", "512"), "embed", "takes 512"),
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    thinking = {"thinking": QWEN, "always-thinks": DEEPSEEK_R1}
    for name, template in {
        "chat": TOOL_TEMPLATE,
        "without-tools": CHAT_TEMPLATE,
        # Their kinds of thinking, and tools, so that only one thing is wrong with them.
        **{name: with_tools(text) for name, text in thinking.items()},
    }.items():
        write_tiny_gguf(folder / f"{name}.gguf", template=template)
    write_tiny_gguf(folder / "embed.gguf", embeddings=True, pooling=gguf.PoolingType.MEAN)
    (folder / CLOCK).write_text('Time: {{ strftime_now("%H:%M:%S") }}\n' + TOOL_TEMPLATE)
    return folder


def with_tools(template: str) -> str:
    return "{%- for tool in tools or [] %}{{ tool | tojson }}\n{%- endfor %}" + template


@contextmanager
def running(models: Path, folder: Path, model: str, flags: tuple[str, ...]) -> Iterator[str]:
    """A llama-server with a model of ours; its base URL."""
    placed = tuple(str(models / flag) if flag == CLOCK else flag for flag in flags)
    process, root = llama_server(
        folder, "-m", str(models / f"{model}.gguf"), "--alias", model, *placed, port=free_port()
    )
    with process:
        yield f"{root}/v1"


def add(url: str, *, key: str = KEY, use: Use = Use.GENERATION) -> Server:
    server = Server(name="Tested", base_url=url)
    server.set_key(key)
    server.save()
    set_default(server, use)
    return server


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.code for fault in FAULTS])
def test_doctor_names_the_fault_of_a_real_server_and_no_other(
    fault: Fault, models: Path, tmp_path: Path
) -> None:
    use = Use.EMBEDDINGS if fault.model == "embed" else Use.GENERATION
    with running(models, tmp_path, fault.model, fault.flags) as url:
        add(url, key=fault.key, use=use)
        code, text, notes = doctor("Tested")
    assert [line for line in text.splitlines() if line.endswith("]")] == [
        line for line in text.splitlines() if line.endswith(f"[{fault.code}]")
    ]
    assert text.count(f"[{fault.code}]") == 1
    assert fault.said in text
    assert (code, notes) == (1, "")


@pytest.mark.parametrize(
    ("model", "flags", "use"),
    [
        ("chat", HEALTHY, Use.GENERATION),
        ("thinking", HEALTHY, Use.GENERATION),
        ("always-thinks", (*HEALTHY, "--reasoning-budget", "1"), Use.GENERATION),
        ("embed", EMBEDDING, Use.EMBEDDINGS),
    ],
)
def test_doctor_says_nothing_of_a_healthy_server(
    model: str, flags: tuple[str, ...], use: Use, models: Path, tmp_path: Path
) -> None:
    with running(models, tmp_path, model, flags) as url:
        add(url, use=use)
        assert doctor() == (0, "", "")
