"""The doctor at real llama-servers: each with one fault, healthy ones, and mended ones."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from apps.llm.client import ChatRequest, close_clients
from apps.llm.errors import PromptTooLong
from apps.llm.permits import Lane
from apps.monitoring.history.sampling import take_samples
from apps.runtime.redis import close_async_redis
from apps.servers.models import Server, Use
from apps.servers.services import choose_target, hold_slot, refresh_server
from apps.tuning.doctor import answers
from apps.tuning.doctor.examination import Examination
from apps.tuning.doctor.findings import finding_lines
from apps.tuning.doctor.known_faults import known_faults
from apps.tuning.doctor.mend import propose
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.runs.doctor_services import start_examination
from apps.tuning.runs.task_kind import DOCTOR
from apps.work import services as work
from tests import tiny_gguf
from tests.backends.stacks.llama_servers import KEY
from tests.llama_process import free_port
from tests.llm.thinking_templates import DEEPSEEK_R1, QWEN
from tests.markup import visible_text
from tests.tiny_gguf import CHAT_TEMPLATE, TOOL_TEMPLATE, random_weights, write_tiny_gguf
from tests.tuning.doctor.command import doctor
from tests.tuning.doctor.real.servers import CLOCK, DRAFT, EMBEDDING, HEALTHY, SHOWN, add, running

pytestmark = pytest.mark.django_db(transaction=True)


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
    Fault("moving-history", HEALTHY, model="counts-messages", said="the first message the first"),
    Fault(
        "stripped-reasoning",
        ("--reasoning-budget", "256", *HEALTHY),
        model="strips-thoughts",
        said="tokens processed again with the second message",
    ),
    Fault("no-tools", HEALTHY, model="without-tools", said="supports_tools: false"),
    Fault("thinks-anyway", HEALTHY, model="always-thinks", said="All 32 tokens"),
    Fault("only-thought", HEALTHY, model="thinking", said="512 tokens and"),
    Fault(
        "drafts-rejected",
        ("-md", DRAFT, "--spec-type", "draft-simple", *HEALTHY),
        said="drafted tokens. One pass wrote 1.",
    ),
    Fault(
        "no-drafts",
        ("-md", DRAFT, "--spec-type", "draft-simple", "--spec-draft-p-min", "1.0", *HEALTHY),
        said="started to draft with draft-simple",
    ),
    Fault("no-metrics", ("-np", "4", "-c", "16384", "--api-key", KEY), said="endpoint_metrics"),
    Fault("no-slots", ("--no-slots", *HEALTHY), said="endpoint_slots"),
    Fault("no-key", ("-np", "4", "-c", "16384", "--metrics"), said="without a key", key=""),
    Fault("one-slot", ("-np", "1", "-c", "4096", *SHOWN), said="-np 4 -c 16384"),
    Fault("not-normalised", (*EMBEDDING, "--embd-normalize", "-1"), "embed", "instead of 1"),
    Fault("wrong-pooling", (*EMBEDDING, "--pooling", "cls"), "embed", "file says mean"),
    Fault("no-pooling", (*EMBEDDING, "--pooling", "none"), "embed", "Pooling type 'none'"),
    Fault("small-batch", (*EMBEDDING, "-ub", "512"), "embed", "takes 512"),
)


# Examined before and after they are mended, below; the others at the terminal.
MENDABLE = (
    "small-context",
    "prompt-cache",
    "thinks-anyway",
    "only-thought",
    "no-metrics",
    "no-slots",
    "one-slot",
)
MENDABLE += ("not-normalised", "small-batch", "drafts-rejected", "no-drafts", "wrong-pooling")
OTHERS = [fault for fault in FAULTS if fault.code not in MENDABLE]


@pytest.fixture(autouse=True)
def _nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy is in front: tokens that come late come late to a machine that is busy."""
    monkeypatch.setattr(answers, "USUAL_DELAY_SECONDS", 600.0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    thinking = {"thinking": QWEN, "always-thinks": DEEPSEEK_R1}
    for name, template in {
        "chat": TOOL_TEMPLATE,
        "without-tools": CHAT_TEMPLATE,
        "counts-messages": f"Messages: {{{{ messages | length }}}}\n{TOOL_TEMPLATE}",
        "strips-thoughts": with_tools(QWEN.replace("message.reasoning_content %}", "false %}")),
        # Their kinds of thinking, and tools, so that only one thing is wrong with them.
        **{name: with_tools(text) for name, text in thinking.items()},
    }.items():
        write_tiny_gguf(folder / f"{name}.gguf", template=template)
    write_tiny_gguf(folder / "embed.gguf", embeddings=True, pooling=gguf.PoolingType.MEAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_gguf, "random_weights", guess_other_tokens)
        write_tiny_gguf(folder / DRAFT, template=TOOL_TEMPLATE)
    (folder / CLOCK).write_text('Time: {{ strftime_now("%H:%M:%S") }}\n' + TOOL_TEMPLATE)
    return folder


def guess_other_tokens(*, embeddings: bool) -> dict[str, np.ndarray]:
    """The weights of a draft model that has learned something else than the model."""
    weights = random_weights(embeddings=embeddings)
    weights["output.weight"] = np.roll(weights["output.weight"], 7, axis=0)
    return weights


def with_tools(template: str) -> str:
    return "{%- for tool in tools or [] %}{{ tool | tojson }}\n{%- endfor %}" + template


@pytest.mark.parametrize("fault", OTHERS, ids=[fault.code for fault in OTHERS])
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
        ("thinking", (*HEALTHY, "--reasoning-budget", "256"), Use.GENERATION),
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


def examine(server: Server) -> Examination:
    run = start_examination(server, None)
    work.run_subject(DOCTOR, server.pk)
    run.refresh_from_db()
    [one] = run.examinations
    return one


@pytest.mark.parametrize("code", MENDABLE)
def test_a_server_restarted_with_the_mended_command_shows_before_and_after(
    code: str, models: Path, tmp_path: Path, browser: Client
) -> None:
    fault = next(fault for fault in FAULTS if fault.code == code)
    use = Use.EMBEDDINGS if fault.model == "embed" else Use.GENERATION
    port = free_port()
    with running(models, tmp_path, fault.model, fault.flags, port) as url:
        server = add(url, use=use)
        before = examine(server)
    assert ([one.code for one in before.findings], before.notes) == ([code], [])
    [found] = before.findings
    assert fault.said in "\n".join(finding_lines(found))
    mend = propose(f"llama-server {' '.join(fault.flags)}", found.flags, shipped_table())
    assert mend is not None
    mended = tuple(mend.command.replace("\\\n", " ").split()[1:])
    with running(models, tmp_path, fault.model, mended, port):
        after = examine(server)
    assert (after.findings, after.notes) == ([], [])
    shown = visible_text(browser.get(f"/servers/{server.pk}/doctor/").content.decode())
    assert f"Mended {found.what}" in shown


async def ask(server: Server, *, characters: int) -> None:
    """One request as a program sends it; a token is a byte."""
    target = choose_target(await refresh_server(server))
    request = ChatRequest(target.model, [{"role": "user", "content": "a" * characters}], 8, {})
    try:
        async with hold_slot(server, lane=Lane.BATCH, model=target.model) as held:
            held.record_usage((await target.client.complete(request)).usage)
    finally:
        await close_clients()
        await close_async_redis()


def test_prompts_that_do_not_fit_are_named_with_their_sizes(models: Path, tmp_path: Path) -> None:
    with running(models, tmp_path, "chat", HEALTHY) as url:
        server = add(url)
        take_samples(time.time() - 60)
        for _ in range(3):
            async_to_sync(ask)(server, characters=500)
            with pytest.raises(PromptTooLong):
                async_to_sync(ask)(server, characters=6000)
        take_samples()
        code, text, notes = doctor()
        [sentence] = known_faults([Server.objects.get()])[server.pk]
    assert (code, notes, text.count("[tight-context]"), text.count("]")) == (1, "", 1, 1)
    assert re.search(r"95% of [\d,]+ prompts had at most 6,\d{3} tokens", text)
    assert "3 of " in text
    assert "Cost: 0 chats without their earlier messages, 3 refused requests." in text
    assert "Flags: -c 32768 -np 4" in text
    assert "Prompts that come do not fit into a slot." in sentence
