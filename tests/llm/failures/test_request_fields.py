"""Fields that a server refuses, read from its refusal."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm.failures.request_fields import NEEDED, THINKING, refused_fields, without

SENT = {
    "model": "m",
    "messages": [],
    "stream": True,
    "max_tokens": 10,
    "temperature": 0.2,
    "min_p": 0.05,
    "return_progress": True,
    "reasoning_effort": "none",
}


def openai(message: str, param: str | None = None, code: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "param": param, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "fields"),
    [
        (
            400,
            openai("Unrecognized request arguments supplied: min_p, return_progress"),
            {"min_p", "return_progress"},
        ),
        (400, openai("Unknown parameter: 'min_p'.", "min_p", "unknown_parameter"), {"min_p"}),
        (
            400,
            openai(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
                "max_tokens",
                "unsupported_parameter",
            ),
            {"max_tokens"},
        ),
        (
            400,
            openai(
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the "
                "default (1) value is supported.",
                "temperature",
                "unsupported_value",
            ),
            {"temperature"},
        ),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "min_p"], "msg": "Extra"}]},
            {"min_p"},
        ),
        (400, openai("property 'min_p' is unsupported"), {"min_p"}),
        (400, 'json: unknown field "return_progress"', {"return_progress"}),
        (
            400,
            openai(
                'Invalid JSON payload received. Unknown name "min_p": Cannot find field.',
            ),
            {"min_p"},
        ),
        (
            400,
            openai(
                "litellm.UnsupportedParamsError: openai does not support parameters: ['min_p']",
            ),
            {"min_p"},
        ),
        # A value that this model has not: it then thinks as it does by default.
        (
            422,
            {"detail": [{"type": "literal_error", "loc": ["body", "reasoning_effort"]}]},
            {"reasoning_effort"},
        ),
        (400, '{"reasoning_effort": "none", "messages": [], "error": "busy"}', set()),
        # Not a refusal of a field, or not of one that we could do without.
        (400, openai("min_p must be between 0 and 1", "min_p", "invalid_value"), set()),
        (400, openai("Unknown parameter: 'messages'.", "messages", "unknown_parameter"), set()),
        (400, openai("This model does not support image input."), set()),
        (500, openai("Unknown parameter: 'min_p'."), set()),
        (400, None, set()),
    ],
)
def test_refused_fields_reads_each_kind_of_refusal(
    status: int, body: Any, fields: set[str]
) -> None:
    assert refused_fields(status, body, SENT) == fields


def test_a_limit_of_tokens_goes_by_its_newer_name() -> None:
    kept = without(SENT, frozenset({"max_tokens", "min_p"}))
    assert kept["max_completion_tokens"] == 10
    assert not kept.keys() & {"max_tokens", "min_p"}
    both = without(SENT, frozenset({"max_tokens", "max_completion_tokens"}))
    assert not both.keys() & {"max_tokens", "max_completion_tokens"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from([*SENT]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "loc", "type", "param", "code", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


EVERY_FIELD = sorted({*SENT, *NEEDED, *THINKING, "max_completion_tokens", "stop"})


@given(st.integers(400, 500), JSON, st.sets(st.sampled_from(EVERY_FIELD)))
@settings(max_examples=200)
def test_refused_fields_are_optional_fields_that_were_sent(
    status: int, body: Any, names: set[str]
) -> None:
    sent = dict.fromkeys(names, 1)
    refused = refused_fields(status, body, sent)
    assert refused <= names - NEEDED
    if status not in {400, 422}:
        assert not refused


@given(st.sets(st.sampled_from(EVERY_FIELD)), st.sets(st.sampled_from(EVERY_FIELD)))
def test_without_keeps_what_was_not_refused_and_adds_the_newer_limit_alone(
    names: set[str], refused: set[str]
) -> None:
    sent = {name: place for place, name in enumerate(sorted(names))}
    kept = without(sent, frozenset(refused - NEEDED))
    assert kept.keys() >= names - (refused - NEEDED)
    assert not kept.keys() & (refused - NEEDED)
    assert kept.keys() <= names | {"max_completion_tokens"}
    assert all(
        kept[name] == sent[name]
        for name in kept.keys() & (names - {"max_tokens"} - {"max_completion_tokens"})
    )
