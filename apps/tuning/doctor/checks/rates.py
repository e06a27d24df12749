"""Checks of rates against the roof of the GPU that a server's machine has. Pure.

Silent where the GPU, or the size of the model, is not known.
"""

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks.gpu import check_gpu
from apps.tuning.doctor.checks.prompts.reasons import value_of
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading

GB = 1e9
# Starting the work of one token takes as long, however small the model is.
TOKEN_SECONDS = 0.003
# Generation reaches a half of its roof and more, processing of prompts a fifth and more.
LEAST_OF_GENERATION = 0.33
LEAST_OF_PROMPT = 0.05
# Shorter prompts, and times, tell nothing.
FEWEST_TOKENS, SHORTEST_SECONDS = 256, 0.5
SMALL_UBATCH = 256


def check_generation_rate(reading: Reading, answers: Answers) -> Finding | None:
    """Generation far below what the memory bandwidth of the GPU allows."""
    arrival, read_bytes = answers.arrival, _read_bytes(reading)
    bandwidth = min((gpu.bandwidth or 0.0 for gpu in reading.gpus), default=0.0)
    if arrival is None or not read_bytes or not bandwidth or check_gpu(reading, answers):
        return None
    expected = 1 / (read_bytes / bandwidth + TOKEN_SECONDS)
    if arrival.speed >= LEAST_OF_GENERATION * expected:
        return None
    return Finding(
        code="slow-generation",
        severity=Severity.FAULT,
        what="The server generates far more slowly than its GPU can.",
        evidence=(
            f"It generates {arrival.speed:.1f} tokens/s. Each token reads {read_bytes / GB:.1f} GB,"
            f" and {_named(reading)} reads {bandwidth / GB:,.0f} GB/s: {bandwidth / read_bytes:.0f}"
            f" tokens/s at most, {expected:.0f} with the work around it."
        ),
        cost=f"{arrival.speed:.1f} tokens/s instead of about {expected:.0f}.",
        measured=Amount(value=arrival.speed, unit=Unit.TOKENS_PER_SECOND),
        advice="See whether all layers and the KV cache are on the GPU, whether the context spills "
        "into system memory, and whether other programs use the GPU.",
        flags=_flags(reading.command),
    )


def check_prompt_rate(reading: Reading, answers: Answers) -> Finding | None:
    """Prompts that are processed far more slowly than the GPU computes."""
    first, again, parameters = answers.first, answers.again, reading.parameters
    flops = min((gpu.flops or 0.0 for gpu in reading.gpus), default=0.0)
    if first is None or again is None or not again.is_cached or not parameters or not flops:
        return None
    tokens = first.reprocessed - again.reprocessed
    if first.processing is not None and again.processing is not None:
        seconds = first.processing - again.processing
    else:  # the network and the first token of the answer take as long with a cached prompt
        seconds = first.seconds - again.seconds
    if tokens < FEWEST_TOKENS or seconds < SHORTEST_SECONDS:
        return None
    roof, rate = flops / (2 * parameters), tokens / seconds
    if rate >= LEAST_OF_PROMPT * roof or check_gpu(reading, answers):
        return None
    return Finding(
        code="slow-prompt",
        severity=Severity.FAULT,
        what="The server processes prompts far more slowly than its GPU can.",
        evidence=(
            f"{tokens:,} new tokens took {seconds:.2f} s longer than cached ones: {rate:,.0f} "
            f"tokens/s. The roof of {_named(reading)} is {roof:,.0f} tokens/s with this model, and "
            "a fifth of it or more is usual."
        ),
        cost=f"{rate:,.0f} tokens/s: {1000 / rate:.1f} s for a prompt of 1,000 tokens.",
        measured=Amount(value=rate, unit=Unit.TOKENS_PER_SECOND),
        advice="See whether all layers are on the GPU, whether the build computes on it, and "
        "whether other programs use it. Small batches (-ub) and flash attention that is off are "
        "slower too.",
        flags=_flags(reading.command),
    )


def _read_bytes(reading: Reading) -> int | None:
    """Bytes read for a token: of a mixture of experts less than all, where its file tells."""
    known = reading.shape.read_bytes if reading.shape is not None else None
    return known or reading.weight_bytes


def _named(reading: Reading) -> str:
    slowest = min(reading.gpus, key=lambda gpu: gpu.bandwidth or 0.0)
    return f"the {slowest.name}" if len(reading.gpus) == 1 else f"the slowest GPU ({slowest.name})"


def _flags(command: str) -> tuple[str, ...]:
    """What the command has that makes it slower."""
    words = command.split()
    found = []
    if value_of(command, frozenset({"-ngl", "--gpu-layers", "--n-gpu-layers"})).isdigit():
        found.append("-ngl auto")
    if "-nkvo" in words or "--no-kv-offload" in words:
        found.append("--kv-offload")
    if "--no-op-offload" in words:
        found.append("--op-offload")
    if value_of(command, frozenset({"-fa", "--flash-attn"})) == "off":
        found.append("-fa auto")
    ubatch = value_of(command, frozenset({"-ub", "--ubatch-size"}))
    if ubatch.isdigit() and int(ubatch) < SMALL_UBATCH:
        found.append("-ub 512")
    return tuple(found)
