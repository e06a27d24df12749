"""What is likely to go wrong with these flags (pure)."""

from collections.abc import Iterable

from apps.tuning.planner.flags import Flag
from apps.tuning.planner.kv_cache import DEFAULT_UBATCH, KvCache
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.uses import NEEDS, Use

FEW_TOKENS = 1024
MANY_SLOTS_FOR_DRAFTS = 2


def warnings_for(
    flags: Iterable[Flag], cache: KvCache, shape: ModelShape, use: Use
) -> tuple[str, ...]:
    """A sentence for each risk; none is quiet consent."""
    names = {flag.name for flag in flags}
    return tuple(_about_cache(cache, shape, use)) + tuple(_about_flags(names, cache, use))


def _about_cache(cache: KvCache, shape: ModelShape, use: Use) -> Iterable[str]:
    share, needs = cache.context // cache.slots, NEEDS[use]
    if share < min(FEW_TOKENS, shape.context or FEW_TOKENS):
        yield f"Only {share} tokens a slot: long prompts are refused. Use fewer slots."
    if shape.context is not None and share > shape.context:
        yield (
            f"{share:,} tokens a slot, but the model was trained for {shape.context:,}: what lies"
            " beyond is not understood."
        )
    if needs.tools and {cache.key_type, cache.value_type} & {"q4_0", "q4_1", "iq4_nl"}:
        yield "Tool calls often break with a KV cache of 4 bits: use q8_0."
    if cache.unified and needs.jobs:
        yield (
            "A unified pool with jobs: when all slots are full, one answer takes the space of"
            " another. Split the context between the slots."
        )


def _about_flags(names: set[str], cache: KvCache, use: Use) -> Iterable[str]:
    share = cache.context // cache.slots
    if NEEDS[use].whole_prompt_in_ubatch and (cache.ubatch or DEFAULT_UBATCH) < share:
        what = "decision models need the whole prompt" if use is Use.DECISIONS else "a text must be"
        yield (
            f"--ubatch-size {cache.ubatch} is less than the {share:,} tokens of a slot: {what} in"
            " one micro-batch."
        )
    if "--model-draft" in names and cache.slots > MANY_SLOTS_FOR_DRAFTS:
        yield (
            f"Speculative decoding with {cache.slots} slots: drafts compete with the other answers"
            " for the same computing time, and cost more than they save."
        )
    if "--metrics" not in names:
        yield "No --metrics: speed and queue of the server stay unseen."
    if not names & {"--api-key", "--api-key-file"}:
        yield (
            "No API key: every program that reaches the port can use the server. Leave it on"
            " 127.0.0.1, or give it a key."
        )
