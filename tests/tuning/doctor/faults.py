"""The faults that the checks know: what differs from a healthy server, and what is said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.servers.models import Kind
from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import (
    Answer,
    Arrival,
    Leaving,
    LongText,
    Silence,
    Thought,
)
from apps.tuning.doctor.prompt_answers import PromptRead, Rendered, Turns
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.slots_seen import SlotsSeen
from apps.tuning.hooks import Cuts, Drafts, Prompts, Speeds, Swaps, Traffic
from apps.tuning.planner.hardware import HARDWARE
from apps.tuning.planner.model.model_shape import Layer, ModelShape
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
SHAPE = ModelShape("llama", (Layer(8, 128, 128),))
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
        "tight-context",
        {
            "traffic": Traffic(
                prompts=Prompts(requests=100, usual=4000, largest=10_321, cut=30, refused=10)
            ),
            "context_trained": 32_768,
        },
        evidence="95% of 100 prompts had at most 4,000 tokens, and all at most 10,321. A slot has "
        "4,096. 40 of 100 (31% to 50%) lost earlier messages or were refused",
        cost="30 chats without their earlier messages, 10 refused requests",
        flags="-c 52224 -np 4",
        measured=Amount(value=0.4, unit=Unit.SHARE),
    ),
    Case(
        "tight-context",
        {
            "traffic": Traffic(prompts=Prompts(requests=9, usual=4000, largest=4096, cut=9)),
            "context_trained": 4096,
        },
        evidence="9 of 9",
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
        "prompt-cache",
        {
            "command": "llama-server -m a.gguf -sps 1.0 --cache-ram 0",
            "shape": replace(SHAPE, sliding_window=512),
        },
        {
            "again": UNCACHED,
            "again_if_asked": UNCACHED,
            "changed": PromptRead(1000, 0, 0.51),
        },
        evidence="One with another first character took 0.51 s to its first token. The command has "
        "-sps 1.0: a request takes the slot of its earlier prompt only if more than this share is "
        "the same. The command has --cache-ram 0: the prompt of a slot is lost when another takes "
        "it. The model has a sliding window of 512 tokens",
        cost="988 tokens",
        flags="-sps 0.1 --cache-ram 8192 --swa-full",
        measured=Amount(value=988, unit=Unit.TOKENS),
    ),
    Case(
        "prompt-cache",
        {"command": "llama-server -ctxcp 0", "shape": replace(SHAPE, state_bytes=9)},
        {"again": UNCACHED},
        evidence="recurrent layers",
        flags="--ctx-checkpoints 32",
    ),
    Case(
        "no-cache-reuse",
        {
            "command": "llama-server --cache-reuse 256",
            "shape": replace(SHAPE, sliding_window=512),
        },
        {"changed": PromptRead(1000, 0, 0.5)},
        evidence="Of a prompt that differed from the one before in its first character alone, 0 of "
        "1,000 tokens",
        cost="1,000 tokens processed again, first token after 0.50 s instead of 0.02 s",
        flags="--cache-reuse 0",
        measured=Amount(value=1000, unit=Unit.TOKENS),
    ),
    Case(
        "moving-history",
        answers={
            "next_turn": PromptRead(1020, 8, 0.5),
            "turns": Turns(4000, 12, keeps_reasoning=True),
        },
        evidence="8 of 1,020 tokens came from the prompt cache. The template writes earlier "
        "messages in another way then: of 4,000 characters up to the end of the first message the "
        "first 12 are the same",
        cost="1,012 tokens processed again, first token after 0.50 s instead of 0.02 s",
        flags="--chat-template-file",
        measured=Amount(value=1012, unit=Unit.TOKENS),
    ),
    Case(
        "moving-history",
        {"shape": replace(SHAPE, sliding_window=512), "keeps_reasoning": True},
        {
            "next_turn": PromptRead(1020, 8, 0.5),
            "turns": Turns(4000, 4000, keeps_reasoning=False),
        },
        evidence="leaves the reasoning of the earlier answer out. The model has a sliding window",
        flags="--reasoning-preserve --swa-full",
    ),
    Case(
        "stripped-reasoning",
        {"keeps_reasoning": True},
        {
            "next_turn": PromptRead(1020, 950, 0.03),
            "turns": Turns(4000, 4000, keeps_reasoning=False),
        },
        evidence="The reasoning is not in the prompt",
        cost="70 tokens processed again with the second message",
        flags="--reasoning-preserve",
        measured=Amount(value=70, unit=Unit.TOKENS),
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
        "no-drafts",
        answers={"drafts_with": "draft-simple"},
        evidence="started to draft with draft-simple. In 81 tokens of answers",
        cost="40.0 tokens/s, as without drafts",
        flags="--spec-type none",
        measured=Amount(value=40.0, unit=Unit.TOKENS_PER_SECOND),
    ),
    Case(
        "no-drafts",
        {
            "drafts_with": "ngram-simple",
            "command": "llama-server --spec-type ngram-simple --spec-draft-p-min 1",
            "traffic": Traffic(written=20_000),
        },
        evidence="In 20,081 tokens",
        flags="--spec-draft-p-min 0",
    ),
    Case(
        "no-drafts",
        {"drafts_with": "a draft model", "command": "llama-server -md draft.gguf"},
        flags="--spec-type draft-simple",
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
        "slow-generation",
        {
            "gpus": (HARDWARE["RTX 4090"],),
            "weight_bytes": 5 * 10**9,
            "command": "llama-server -nkvo -ngl 33",
        },
        {"arrival": Arrival(41, 2.0, 2.0, 0.01)},
        evidence="It generates 20.0 tokens/s. Each token reads 5.0 GB, and the RTX 4090 reads "
        "1,008 GB/s: 202 tokens/s at most, 126 with the work around it.",
        cost="20.0 tokens/s instead of about 126",
        flags="-ngl auto --kv-offload",
        measured=Amount(value=20.0, unit=Unit.TOKENS_PER_SECOND),
    ),
    Case(
        "slow-prompt",
        {
            "gpus": (HARDWARE["RTX 4090"], HARDWARE["RTX 3090"]),
            "parameters": 8 * 10**9,
            "command": "llama-server -ub 32 --flash-attn off --no-op-offload",
        },
        {"first": PromptRead(1000, 0, 8.5), "again": PromptRead(1000, 950, 0.5)},
        evidence="950 new tokens took 8.00 s longer than cached ones: 119 tokens/s. The roof of "
        "the slowest GPU (RTX 3090) is 4,438 tokens/s with this model",
        cost="119 tokens/s: 8.4 s for a prompt of 1,000 tokens",
        flags="--op-offload -fa auto -ub 512",
        measured=Amount(value=118.75, unit=Unit.TOKENS_PER_SECOND),
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
    Case(
        "wrong-pooling",
        {"shape": replace(SHAPE, pooling=1)},
        {"likeness": 0.999999},
        evidence="the same vector (cosine similarity 1.00000): it is made of the first token. The "
        "model’s file says mean",
        cost="one to a search",
        flags="--pooling mean",
        healthy=EMBEDDINGS,
    ),
    Case(
        "wrong-pooling",
        {"shape": replace(SHAPE, pooling=3), "command": "llama-server --pooling mean"},
        evidence="The command has --pooling mean. The model’s file says last.",
        flags="--pooling last",
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
