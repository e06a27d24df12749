"""What is true of every plan, whatever the model, the memory and the use."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apps.tuning.errors import PlanError
from apps.tuning.planner.flags import Files, flags_of
from apps.tuning.planner.hardware import GIB, Hardware, Kind
from apps.tuning.planner.memory import MemoryPart, largest_context
from apps.tuning.planner.model.model_shape import Layer, ModelShape
from apps.tuning.planner.plan import SMALLEST_CONTEXT, Plan, PlanRequest, make_plan
from apps.tuning.planner.uses import Use

MAYBE_LARGE = st.none() | st.integers(1, 200_000)
LAYERS = st.builds(
    Layer,
    st.integers(0, 16),
    st.sampled_from([64, 80, 128, 256]),
    st.sampled_from([0, 64, 80, 128]),
    st.booleans(),
)
SHAPES = st.builds(
    ModelShape,
    st.just("llama"),
    st.lists(LAYERS, max_size=8).map(lambda layers: tuple(layers) * 8),
    embedding_length=MAYBE_LARGE,
    feed_forward_length=MAYBE_LARGE,
    context=MAYBE_LARGE,
    vocabulary=MAYBE_LARGE,
    sliding_window=st.integers(1, 8192),
    state_bytes=st.integers(0, 10**8),
    weight_bytes=st.none() | st.integers(1, 60 * GIB),
    read_bytes=st.none() | st.integers(1, 60 * GIB),
)
HARDWARE = st.builds(
    Hardware,
    st.just("Some"),
    st.sampled_from(Kind),
    st.floats(0.25, 256),
    st.none() | st.floats(1, 8000),
    st.integers(1, 8),
)
USES = st.sampled_from(Use)


def known(parts: tuple[MemoryPart, ...]) -> int:
    return sum(part.bytes or 0 for part in parts)


def has_odd_heads(layer: Layer) -> bool:
    lengths = (layer.key_length, layer.value_length) if layer.kv_heads else ()
    return any(length % 32 for length in lengths)


def more_memory(plan: Plan) -> Plan:
    hardware = plan.request.hardware
    larger = replace(hardware, memory_gib=hardware.memory_gib * 2)
    return make_plan(replace(plan.request, hardware=larger))


@given(SHAPES, HARDWARE, USES)
def test_a_chosen_context_is_within_what_is_wanted_and_trained(
    shape: ModelShape, hardware: Hardware, use: Use
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use))
    assert 1 <= plan.slot_context <= plan.request.needs.context
    assert plan.slot_context <= (shape.context or plan.slot_context)
    assert plan.cache.slots == plan.request.needs.slots


@given(SHAPES, HARDWARE, USES)
def test_a_context_shrinks_to_fit_or_as_far_as_is_sensible(
    shape: ModelShape, hardware: Hardware, use: Use
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use))
    assert plan.fits == (known(plan.parts) <= hardware.available_bytes)
    assert plan.fits or plan.slot_context <= SMALLEST_CONTEXT


@given(SHAPES, HARDWARE, USES)
def test_more_memory_never_means_less_context(
    shape: ModelShape, hardware: Hardware, use: Use
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use))
    larger = more_memory(plan)
    assert larger.slot_context >= plan.slot_context
    assert larger.fits or not plan.fits


@given(SHAPES, HARDWARE, USES, st.integers(1, 256), st.integers(256, 300_000))
def test_what_is_given_is_kept_whether_it_fits_or_not(
    shape: ModelShape, hardware: Hardware, use: Use, slots: int, context: int
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use, slots=slots, context=context))
    assert (plan.cache.slots, plan.slot_context) == (slots, context)
    found = {flag.name: flag.value for flag in flags_of(plan, Files("a.gguf"))}
    assert (found["--parallel"], found["--ctx-size"]) == (str(slots), str(slots * context))


@given(SHAPES, HARDWARE, USES)
def test_all_layers_fit_where_the_plan_does_and_never_more_than_there_are(
    shape: ModelShape, hardware: Hardware, use: Use
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use))
    assert 0 <= plan.layers_that_fit <= len(shape.layers)
    if plan.fits:
        assert plan.layers_that_fit == len(shape.layers)


@given(SHAPES, HARDWARE, USES)
def test_speed_is_known_only_of_what_fits_and_falls_as_the_slot_fills(
    shape: ModelShape, hardware: Hardware, use: Use
) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use))
    if not plan.fits or hardware.bandwidth is None or shape.read_bytes is None:
        assert (plan.roof_empty, plan.roof_full) == (None, None)
    else:
        assert plan.roof_empty is not None
        assert plan.roof_full is not None
        assert 0 < plan.roof_full <= plan.roof_empty


@given(SHAPES, HARDWARE, USES)
def test_the_table_agrees_with_the_plan(shape: ModelShape, hardware: Hardware, use: Use) -> None:
    plan = make_plan(PlanRequest(shape, hardware, use, slots=4, cache_type="f16"))
    row = next(row for row in plan.table if row.slots == 4)
    available, extra = hardware.available_bytes, plan.request.all_extra
    assert row.contexts["f16"] == largest_context(shape, plan.cache, available, extra)
    assume(plan.fits and plan.slot_context >= 256)
    assert (row.contexts["f16"] or 0) >= plan.slot_context // 256 * 256


@given(SHAPES, HARDWARE, st.sampled_from(["q8_0", "q5_0", "q4_0"]))
def test_a_smaller_cache_takes_no_more_or_does_not_suit_the_heads(
    shape: ModelShape, hardware: Hardware, cache_type: str
) -> None:
    request = PlanRequest(shape, hardware, slots=2, context=4096)
    if any(has_odd_heads(layer) for layer in shape.layers):
        with pytest.raises(PlanError, match="do not divide into blocks"):
            make_plan(replace(request, cache_type=cache_type))
        return
    smaller = make_plan(replace(request, cache_type=cache_type))
    assert smaller.needed_bytes <= make_plan(replace(request, cache_type="f16")).needed_bytes
