"""The interface of features to the pump."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.batch.handlers import (
    CHARACTERS_PER_TOKEN,
    Handler,
    JobContext,
    RowOrigin,
    RowOutcome,
    Verdict,
    find_handler,
    register_handler,
)
from apps.core.schemas.json_types import JsonValue
from apps.llm.client import Client
from apps.llm.events import Usage
from apps.llm.thinking import NOT_REPORTED, ThinkingSupport
from tests.batch.conftest import echo

counts = st.integers(0, 10**6)


def tokens_of_spec(spec: dict[str, Any], thinking: ThinkingSupport) -> int:
    return int(spec["max_tokens"])


def context(spec: dict[str, Any]) -> JobContext[dict[str, Any]]:
    return JobContext(1, spec, "m", cast(Client, None))


def test_cached_computes_once_per_job() -> None:
    calls = []

    def keys(spec: dict[str, Any]) -> list[str]:
        calls.append(spec)
        return sorted(spec)

    first = context({"b": 1, "a": 2})
    assert [first.cached(keys), first.cached(keys)] == [["a", "b"]] * 2
    assert context({"c": 3}).cached(keys) == ["c"]
    assert len(calls) == 2


@given(counts, counts, counts)
def test_tokens_are_uncached_prompt_plus_output(prompt: int, cached: int, completion: int) -> None:
    outcome = RowOutcome(Verdict.ACCEPTED, raw="x" * 99, usage=Usage(prompt, cached, completion))
    if outcome.is_counted:
        assert outcome.tokens == max(0, prompt - cached + completion)
    else:
        assert outcome.tokens == 99 // CHARACTERS_PER_TOKEN


@given(st.text(max_size=40), st.text(max_size=40))
def test_tokens_are_estimated_without_reported_usage(prompt: str, raw: str) -> None:
    outcome = RowOutcome(Verdict.REJECTED, prompt=prompt, raw=raw)
    assert not outcome.is_counted
    assert outcome.tokens == max(1, (len(prompt) + len(raw)) // CHARACTERS_PER_TOKEN)


def test_handler_imports_dotted_paths() -> None:
    handler = Handler("tests.batch.conftest.echo", row_tokens=f"{__name__}.tokens_of_spec")
    assert handler.runner() is echo
    assert handler.max_row_tokens({"max_tokens": 7}, NOT_REPORTED) == 7


def test_handler_without_optional_functions() -> None:
    handler = Handler(echo)
    assert handler.parse({"a": 1}) == {"a": 1}
    assert handler.max_row_tokens({}, NOT_REPORTED) == 0
    assert handler.post_processing(1, {}) is None


def test_find_handler_returns_the_registered_one() -> None:
    handler = Handler(echo)
    register_handler("tests.found", handler)
    assert find_handler("tests.found") is handler
    assert find_handler("tests.missing") is None


@pytest.mark.parametrize("origin", [RowOrigin(3), RowOrigin(3, ("Yes.",), 2), RowOrigin(0, turn=1)])
def test_row_origin_json_round_trip(origin: RowOrigin) -> None:
    assert RowOrigin.read(origin.to_json()) == origin


@pytest.mark.parametrize("stored", [None, {"text": "A row of a chat test."}, "for"])
def test_row_origin_of_an_original_row_is_none(stored: JsonValue) -> None:
    assert RowOrigin.read(stored) is None


def test_a_handler_says_whether_its_rows_ask_for_slots() -> None:
    assert not Handler(echo).rows_ask_for_slots({})
    own = Handler(echo, asks_for_slots=lambda spec: bool(spec["own"]))
    assert [own.rows_ask_for_slots({"own": value}) for value in ("", "x")] == [False, True]
