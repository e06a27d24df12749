"""The faults that the checks know: what differs from a healthy server, and what is said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.servers.models import Kind
from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import (
    Answer,
    Arrival,
    Leaving,
    LongText,
    PromptRead,
    Rendered,
    Silence,
    Thought,
)
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.slots_seen import SlotsSeen
from apps.tuning.hooks import Cuts, Drafts, Speeds, Swaps, Traffic
from tests.tuning.doctor.readings import CHAT, EMBEDDINGS


@dataclass(frozen=True)
class Case:
    """A fault: what differs from a healthy server, and words of the finding."""

    code: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    evidence: str = ""
    cost: str = "not measured"
    flags: str = ""
    configuration: str = ""
    measured: Amount | None = None
    healthy: Reading = CHAT


GIB = 1024**3
UNCACHED = PromptRead(1000, 12, 0.5)
CLOCK = "{{ strftime_now('%d %b %Y, %H:%M') }}"
FAULTS = [
    Case(
        "stuck",
        answers={"has_token": False, "silence": Silence(60.0, SlotsSeen.IDLE)},
        evidence="no token after 60 s. /slots showed a slot with nothing to do",
        cost="60 s here",
        measured=Amount(value=60.0, unit=Unit.SECONDS),
    ),
    Case(
        "stuck",
        {"silent_seconds": 4000.0},
        {"has_token": False},
        evidence="No request has had a token for 4,000 s",
    ),
    Case(
        "swapping",
        {"kind": Kind.LLAMA_SWAP, "swaps": Swaps(loads=200, most=9, models=("a", "b"))},
        evidence="loaded 200 times or more often, 9 times within ten minutes",
        cost="200 loads.",
        measured=Amount(value=200, unit=Unit.NUMBER),
        configuration="swap: false",
    ),
    Case(
        "swapping",
        {
            "kind": Kind.ROUTER,
            "swaps": Swaps(
                loads=9, most=7, requests=30, seconds=9.25, usual_seconds=0.4, models=("a", "b")
            ),
        },
        evidence="30 requests were sent",
        cost="First tokens came after 9.2 s on average, after 0.4 s otherwise",
        configuration="--models-max 2",
    ),
    Case("no-key", {"is_keyless": True}, evidence="doctor.example", flags="--api-key-file"),
    Case(
        "small-context",
        {"context": 256, "slots": 8},
        {"tool_prompt_tokens": 409},
        cost="409 tokens, did not fit",
        evidence="8 slots of 256 tokens each",
        flags="-c 32768 -np 8",
    ),
    Case(
        "prompt-cache",
        answers={"again": UNCACHED, "again_if_asked": PromptRead(1000, 990, 0.02)},
        evidence="12 of 1,000 tokens came from the prompt cache. When the request itself",
        cost="988 tokens processed again, first token after 0.50 s instead of 0.02 s",
        flags="--cache-prompt",
    ),
    Case(
        "prompt-cache",
        answers={"again": UNCACHED, "again_if_asked": UNCACHED},
        evidence="12 of 1,000",
        cost="first token after 0.50 s.",
    ),
    Case(
        "moving-template",
        {"template": "{{ strftime_now('%H:%M:%S') }}"},
        {"again": UNCACHED, "rendered": Rendered(1010, 6, 1.1)},
        evidence="1.1 s apart. Of 1,010 characters the first 6 are the same",
        cost="988 tokens",
        flags="--chat-template-file",
    ),
    Case(
        "clock-in-template",
        {"template": CLOCK},
        {"rendered": Rendered(1010, 1010, 1.1)},
        evidence="%d %b %Y, %H:%M",
    ),
    Case("no-tools", {"takes_tools": False}, {"shows_tools": False}, evidence="supports_tools"),
    Case("no-tools", answers={"tools_refused": "needs --jinja"}, evidence="needs", flags="--jinja"),
    Case(
        "thinks-anyway",
        answers={"thinking_off": Answer("", "Well, ", "length", 32)},
        evidence="enable_thinking: false",
        cost="All 32 tokens",
        flags="--reasoning-budget 1",
    ),
    Case("thinks-anyway", answers={"thinking_off": Answer("<think>Well", "", "length", 32)}),
    Case(
        "only-thought",
        answers={"thought": Thought(512, 512, 9.1, is_cut=True)},
        evidence="max_tokens 512 that says nothing of thinking",
        cost="512 tokens and 9.1 s",
        flags="--reasoning-budget 256",
    ),
    Case(
        "only-thought",
        {"traffic": Traffic(ended=20, only_thought=3)},
        evidence="In the last 24 hours 3 of 20 (5% to 36%) answers",
        flags="--reasoning-budget 256",
    ),
    Case("schema-ignored", answers={"schema": Answer("Blue.", "", "stop", 2)}, evidence="Blue."),
    Case(
        "schema-ignored",
        answers={"schema": Answer('{"colour": "blue"}', "", "stop", 2)},
        evidence="blue",
    ),
    Case(
        "buffered",
        answers={"arrival": Arrival(81, 2.0, 0.004, 0.998)},
        evidence="wrote 81 tokens in 2.0 s. They came within 0.0 s",
        cost="1.00 s late",
    ),
    Case(
        "not-cancelled",
        answers={"leaving": Leaving(84, 2.1, 120)},
        evidence="writing for 2.1 s more",
        cost="2.1 s of a slot and 84 tokens, of at most 120",
    ),
    Case(
        "cut-off",
        {"traffic": Traffic(cuts=Cuts(4, 12_004, 36_024_020))},
        evidence="4 requests were ended on the way, at an age of 30.0 s",
        cost="4 failed requests, 120 s of waiting",
    ),
    Case(
        "slower",
        {"traffic": Traffic(speeds=Speeds((20.0, 21.0) * 4, (40.0, 42.0) * 20, 1.0, 1.1))},
        evidence="20.5 tokens/s in the last 24 hours, 41.0 in the seven days before: 50% less (95% "
        "interval 49% to 51%; 8 and 40 hours)",
        cost="2.0 times as long",
    ),
    Case(
        "drafts-rejected",
        answers={"drafts": Drafts(258, 11, 100)},
        evidence="accepted 11 of 258 drafted tokens. One pass wrote 1.12 tokens",
        cost="at most 12% faster",
        flags="--spec-type none",
    ),
    Case(
        "drafts-rejected",
        {"traffic": Traffic(drafts=Drafts(30_000, 0, 10_000))},
        evidence="In the last 24 hours the model accepted 0 of 30,000",
        cost="at most 0% faster",
    ),
    Case(
        "not-on-gpu",
        {"weight_bytes": 5 * GIB, "traffic": Traffic(gpu_memory=600)},
        evidence="weights take 5.0 GiB, and all GPUs of the machine together hold 0.6 GiB",
        cost="40.0 tokens/s",
    ),
    Case(
        "not-on-gpu",
        {
            "weight_bytes": 20 * GIB,
            "traffic": Traffic(gpu_memory=24_000),
            "command": "llama-server -ngl 35",
        },
        {"arrival": Arrival(5, 2.0, 2.0, 0.01)},
        evidence="It generates 2.0 tokens/s. An RTX 3050, the slowest GPU that Workbench knows, "
        "reads these weights 10.4 times a second",
        cost="2.0 tokens/s",
        flags="-ngl auto",
    ),
    Case(
        "gpu-off",
        {"command": "llama-server -m a.gguf --n-gpu-layers=0"},
        evidence="-ngl 0",
        flags="-ngl auto",
    ),
    Case("gpu-off", {"command": "llama-server --device none"}, evidence="--device none"),
    Case("one-slot", {"slots": 1}, evidence="1 slot", flags="-np 4 -c 16384"),
    Case("no-metrics", {"shows_metrics": False}, evidence="/props", flags="--metrics"),
    Case("no-slots", {"shows_slots": False}, evidence="/props", flags="--slots"),
    Case(
        "no-pooling",
        answers={"embedding_refused": "Pooling type 'none'", "norm": None, "long_text": None},
        evidence="Pooling type 'none'",
        healthy=EMBEDDINGS,
    ),
    Case("not-normalised", answers={"norm": 5.67}, evidence="5.670", healthy=EMBEDDINGS),
    Case(
        "small-batch",
        answers={"long_text": LongText(2040, 512)},
        evidence="2,040 tokens was refused: the physical batch takes 512",
        flags="-b 2048 -ub 2048",
        healthy=EMBEDDINGS,
    ),
]
