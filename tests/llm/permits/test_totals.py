"""What requests to each model of a server came to."""

import asyncio
from bisect import bisect_left
from contextlib import suppress

import pytest

from apps.llm import errors, permits
from apps.llm.events import Usage
from apps.llm.permits import FIRST_TOKEN_BOUNDS_MS, PROMPT_TOKEN_BOUNDS, Lane
from apps.servers.services import hold_slot
from tests.llm.permits.gauge import a_server

pytestmark = pytest.mark.usefixtures("loop_closed")


async def test_totals_add_what_requests_to_each_model_cost() -> None:
    server = a_server(2)
    for speed in (50.0, None):
        async with hold_slot(server, lane=Lane.BATCH, model="qwen:7b") as held:
            held.record_usage(Usage(100, 80, 20, tokens_per_second=speed))
    async with hold_slot(server, lane=Lane.BATCH, model="other") as held:
        held.record_usage(Usage(10, 0, 5, tells_cached=False))
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    assert totals == {
        "qwen:7b": {
            **{"requests": 2, "prompt": 200, "cached": 160, "reported": 200, "completion": 40},
            **{"timed": 20, "timed_ms": 400, "size_2": 2},
        },
        "other": {"requests": 1, "prompt": 10, "completion": 5, "size_0": 1},
    }


async def test_totals_count_first_tokens_by_bucket_and_failures() -> None:
    server = a_server(2)
    for milliseconds in (99.0, 100.0, 1e6):
        async with hold_slot(server, lane=Lane.INTERACTIVE) as held:
            held.first_token_ms = milliseconds
    with suppress(errors.ServerFailed):
        async with hold_slot(server, lane=Lane.INTERACTIVE):
            raise errors.ServerFailed("It failed.")
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    last = len(FIRST_TOKEN_BOUNDS_MS)
    place = FIRST_TOKEN_BOUNDS_MS.index(100)
    assert totals[""] == {
        f"first_{place}": 2,
        f"first_{last}": 1,
        "first_ms": 1_000_199,
        "failed": 1,
    }


async def test_totals_count_answers_that_were_only_a_thought() -> None:
    server = a_server(2)
    for is_only_thought in (True, False, None):
        async with hold_slot(server, lane=Lane.BATCH, model="qwen") as held:
            held.record_usage(Usage(10, 0, 5), is_only_thought=is_only_thought)
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    counts = totals["qwen"]
    assert (counts["requests"], counts["ended"], counts["only_thought"]) == (3, 2, 1)


async def test_totals_count_drafts_with_the_tokens_of_their_answers() -> None:
    server = a_server(2)
    for drafted, accepted in ((30, 4), (0, 0)):
        usage = Usage(10, 0, 20, drafted=drafted, draft_accepted=accepted)
        async with hold_slot(server, lane=Lane.BATCH, model="qwen") as held:
            held.record_usage(usage)
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    counts = totals["qwen"]
    drafts = (counts["drafted"], counts["draft_accepted"], counts["drafting"])
    assert drafts == (30, 4, 20)


async def test_totals_count_prompts_by_size_cut_and_refused() -> None:
    server = a_server(2)
    for tokens, is_cut in ((4000, True), (4000, False)):
        async with hold_slot(server, lane=Lane.INTERACTIVE, model="qwen") as held:
            held.is_prompt_cut = is_cut
            held.record_usage(Usage(tokens, 0, 5))
    for error in (errors.PromptTooLong(9000, 4096), errors.PromptTooLong()):
        with suppress(errors.PromptTooLong):
            async with hold_slot(server, lane=Lane.BATCH, model="qwen"):
                raise error
    totals = (await asyncio.to_thread(permits.read_totals, [server.pk]))[server.pk]
    counts = totals["qwen"]
    size, larger = (bisect_left(PROMPT_TOKEN_BOUNDS, tokens) for tokens in (4000, 9000))
    assert (counts["prompt_cut"], counts["too_long"], counts["failed"]) == (1, 2, 2)
    assert (counts[f"size_{size}"], counts[f"size_{larger}"]) == (2, 1)


async def test_load_has_holders_by_model() -> None:
    server = a_server(2)
    async with hold_slot(server, lane=Lane.BATCH, model="qwen"):
        load = (await asyncio.to_thread(permits.read_loads, [server.pk]))[server.pk]
    assert (load.held, load.waiting) == ({"qwen": 1}, {})


async def test_the_rate_of_prompts_is_that_of_long_ones() -> None:
    server = a_server(2)
    for tokens, milliseconds in ((600, 100.0), (5, 900.0), (0, 0.0)):
        async with hold_slot(server, lane=Lane.BATCH, model="qwen") as held:
            held.record_usage(Usage(tokens, 0, 5, prefilled=tokens, prefill_ms=milliseconds))
        assert await permits.read_prefill_rate(server.pk, "qwen") is None
    async with hold_slot(server, lane=Lane.BATCH, model="qwen") as held:
        part = Usage(900, 0, 5, prefilled=900, prefill_ms=200.0)
        held.record_usage(part + part)  # of an answer that was continued
    assert await permits.read_prefill_rate(server.pk, "qwen") == 4800.0
    assert await permits.read_prefill_rate(server.pk, "other") is None
