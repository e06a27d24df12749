"""A plan as text for a terminal (pure)."""

from collections.abc import Iterable, Iterator

from apps.tuning.planner.flags import Flag
from apps.tuning.planner.hardware import GIB, Hardware, Kind
from apps.tuning.planner.kv_cache import KvCache
from apps.tuning.planner.memory import CACHE_TYPES, MemoryPart
from apps.tuning.planner.model.model_shape import ModelShape
from apps.tuning.planner.plan import Plan
from apps.tuning.planner.stack.stack_plan import StackPlan

NOT_REPORTED = "not reported"


def plan_lines(plan: Plan) -> Iterator[str]:
    """Model, hardware, memory by part, what fits, and the roof of the speed."""
    yield describe_model(plan.request.shape)
    yield describe_hardware(plan.request.hardware)
    yield from ("", f"Memory for {describe_cache(plan.cache)}")
    yield from map(part_line, plan.parts)
    yield _fit_line(plan)
    for reason in plan.request.shape.upper_bounds:
        yield f"  KV cache is an upper bound: {reason}"
    yield from ("", "Largest context of a slot, by type of the KV cache")
    yield "  slots" + "".join(f"{name:>10}" for name in CACHE_TYPES)
    for row in plan.table:
        cells = (f"{size:,}" if (size := row.contexts[name]) else "-" for name in CACHE_TYPES)
        yield f"  {row.slots:>5}" + "".join(f"{cell:>10}" for cell in cells)
    yield from ("", describe_roof(plan))


def stack_lines(stack: StackPlan) -> Iterator[str]:
    """Each model with its share of the memory."""
    yield describe_hardware(stack.hardware)
    for member, plan in zip(stack.members, stack.plans, strict=True):
        yield f"  {member.files.name} ({member.use}): {describe_share(plan)}"
    yield f"  {describe_stack(stack)}"


def describe_share(plan: Plan) -> str:
    return f"{size_text(plan.needed_bytes)}, {describe_cache(plan.cache)}"


def describe_stack(stack: StackPlan) -> str:
    there = size_text(stack.hardware.available_bytes)
    fits = "fits" if stack.fits else "does not fit"
    return f"Together {size_text(stack.needed_bytes)} of {there}: {fits}"


def reason_lines(flags: Iterable[Flag], warnings: Iterable[str]) -> Iterator[str]:
    for flag in flags:
        build = " Depends on your build." if flag.depends_on_build else ""
        yield f"  {flag.name}: {flag.why}{build}"
    for warning in warnings:
        yield f"Warning: {warning}"


def describe_model(shape: ModelShape) -> str:
    kv_heads = sorted({layer.kv_heads for layer in shape.layers if layer.kv_heads})
    figures = [
        f"{shape.architecture}, {shape.quantisation or 'quantisation ' + NOT_REPORTED}",
        f"{len(shape.layers)} layers with a KV cache",
        f"KV heads {' or '.join(map(str, kv_heads)) or 'none'}",
        f"trained for {f'{shape.context:,} tokens' if shape.context else NOT_REPORTED}",
    ]
    if shape.experts:
        figures.append(f"{shape.experts_used or '?'} of {shape.experts} experts")
    return f"{shape.name or 'Model'}: {', '.join(figures)}"


def describe_hardware(hardware: Hardware) -> str:
    times = f"{hardware.count} × " if hardware.count > 1 else ""
    speed = f"{hardware.bandwidth_gb:,.0f} GB/s" if hardware.bandwidth_gb else NOT_REPORTED
    memory = size_text(hardware.available_bytes)
    lent = " that macOS lends to the GPU" if hardware.kind is Kind.APPLE else ""
    return f"{times}{hardware.name}: {memory}{lent}, bandwidth {speed}"


def describe_cache(cache: KvCache) -> str:
    slots = "1 slot" if cache.slots == 1 else f"{cache.slots} slots"
    if cache.unified:
        return f"{slots} that share {cache.context:,} tokens, {cache.key_type}"
    return f"{slots} of {cache.context // cache.slots:,} tokens, {cache.key_type}"


def describe_roof(plan: Plan) -> str:
    """The roof of the generation speed in a sentence."""
    if not plan.fits:
        return "Speed: not estimated, the model does not fit."
    if plan.roof_empty is None or plan.roof_full is None:
        return f"Speed: {NOT_REPORTED} (bandwidth or the tensors' sizes are not known)."
    return (
        f"Speed: at most {plan.roof_empty:,.0f} tokens/s for one answer,"
        f" {plan.roof_full:,.0f} with a full slot (bandwidth / bytes read per token)."
    )


def size_text(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / 1024**2:.1f} MiB"


def part_line(part: MemoryPart) -> str:
    size = NOT_REPORTED if part.bytes is None else size_text(part.bytes)
    return f"  {part.name:<17}{size:>12}{'  estimate' if part.estimate else ''}"


def _fit_line(plan: Plan) -> str:
    there = size_text(plan.request.hardware.available_bytes)
    line = f"  {'Together':<17}{size_text(plan.needed_bytes):>12}  of {there}: "
    if any(part.bytes is None for part in plan.parts):
        return line + "what is not reported comes on top"
    if plan.fits:
        return line + "fits"
    layers = len(plan.request.shape.layers)
    return line + (
        f"does not fit. About {plan.layers_that_fit} of {layers} layers do; llama-server leaves the"
        " rest in main memory by itself, at a fraction of the speed"
    )
