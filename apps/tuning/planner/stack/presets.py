"""Stacks to begin with, by memory: chat, embeddings and decisions at the same time (pure).

Where even the smallest chat model does not fit beside both, it decides itself.

Figures of the models as their makers publish them, sizes of the files in GB, typed in by hand.
"""

from collections.abc import Iterator

from apps.tuning.errors import PlanError
from apps.tuning.planner.flags import Files
from apps.tuning.planner.hardware import HARDWARE, Hardware, Kind, unnamed_hardware
from apps.tuning.planner.model.model_shape import Layer, ModelShape
from apps.tuning.planner.stack.stack_plan import Member, StackPlan, plan_stack
from apps.tuning.planner.uses import Use

# Name | layers | KV heads | head length | width | feed-forward | vocabulary | context | GB
_MODELS = """
Qwen3-Embedding-0.6B-Q8_0|28|8|128|1024|3072|151936|32768|0.64
Qwen3-0.6B-Q8_0|28|8|128|1024|3072|151936|40960|0.64
Qwen3-1.7B-Q8_0|28|8|128|2048|6144|151936|40960|1.83
Qwen3-4B-Q4_K_M|36|8|128|2560|9728|151936|40960|2.50
Qwen3-8B-Q4_K_M|36|8|128|4096|12288|151936|40960|5.03
Qwen3-14B-Q4_K_M|40|8|128|5120|17408|151936|40960|9.00
Qwen3-32B-Q4_K_M|64|8|128|5120|25600|151936|40960|19.76
Llama-3.3-70B-Instruct-Q4_K_M|80|8|128|8192|28672|128256|131072|42.52
"""
EMBEDDINGS, DECISIONS = "Qwen3-Embedding-0.6B-Q8_0", "Qwen3-0.6B-Q8_0"
SLOWEST_CHAT = 8  # tokens a second, about as fast as one reads aloud
GPU_GB, APPLE_GB = (8, 12, 16, 24, 32, 48, 80), (16, 32, 64)


def _models() -> Iterator[ModelShape]:
    for line in _MODELS.strip().splitlines():
        name, *numbers, size = line.split("|")
        layers, kv_heads, length, width, feed_forward, vocabulary, context = map(int, numbers)
        weights = int(float(size) * 1e9)
        yield ModelShape(
            name.split("-")[0].lower(),
            (Layer(kv_heads, length, length),) * layers,
            name=name,
            embedding_length=width,
            feed_forward_length=feed_forward,
            context=context,
            vocabulary=vocabulary,
            weight_bytes=weights,
            read_bytes=weights,
        )


MODELS = {shape.name: shape for shape in _models()}
CHAT_MODELS = [shape for name, shape in MODELS.items() if name not in {EMBEDDINGS, DECISIONS}]


def _hardware() -> Iterator[tuple[str, Hardware]]:
    for size in GPU_GB:
        yield f"{size} GB", unnamed_hardware(size)
    for size in APPLE_GB:
        yield f"Apple {size} GB", Hardware("Apple silicon", Kind.APPLE, size, None)
    yield "CPU", HARDWARE["CPU, DDR5, two channels"]


PRESETS = dict(_hardware())


def plan_preset(name: str) -> StackPlan:
    """Plan the largest chat model that keeps its context beside embeddings and decisions.

    Raises:
        PlanError: there is no preset of this name.
    """
    if name not in PRESETS:
        raise PlanError(f"“{name}” is no preset. Choose from: {', '.join(PRESETS)}.")
    hardware = PRESETS[name]
    for count in (3, 2):
        plans = [plan_stack(_members(chat)[:count], hardware) for chat in CHAT_MODELS]
        good = [plan for plan in plans if plan.fits and _is_usable(plan)]
        if good:
            return good[-1]
    return next(plan for plan in plans if plan.fits)


def _is_usable(plan: StackPlan) -> bool:
    speed = plan.plans[0].roof_empty
    return plan.has_wanted_contexts and (speed is None or speed >= SLOWEST_CHAT)


def _members(chat: ModelShape) -> tuple[Member, ...]:
    return (
        Member(chat, Use.CHAT, Files(f"/models/{chat.name}.gguf")),
        Member(MODELS[EMBEDDINGS], Use.EMBEDDINGS, Files(f"/models/{EMBEDDINGS}.gguf")),
        Member(MODELS[DECISIONS], Use.DECISIONS, Files(f"/models/{DECISIONS}.gguf")),
    )
