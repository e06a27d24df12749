"""JSON columns: what is written is read back, and old rows stay readable."""

from hypothesis import given
from hypothesis import strategies as st

from apps.chat.models import (
    AnswerRequest,
    AnswerSettings,
    PromptPrefix,
    SamplingParams,
    ToolSettings,
)

names = st.text(min_size=1, max_size=8)
params = st.builds(
    SamplingParams,
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 1000),
    stop=st.none() | st.lists(names, max_size=3),
)
tools = st.builds(
    ToolSettings,
    use=st.dictionaries(names, st.sampled_from(["always", "ask"]), max_size=3),
    allowed=st.dictionaries(names, names, max_size=3),
    rounds=st.integers(1, 50),
    parallel=st.booleans(),
)
answer_settings = st.builds(
    AnswerSettings,
    server=st.none() | st.integers(1, 9),
    model=names,
    system_prompt=st.none() | st.integers(1, 9),
    params=params,
)


@given(params, params)
def test_params_override_others(first: SamplingParams, second: SamplingParams) -> None:
    merged = first.updated_by(second).to_json()
    assert merged == first.to_json() | second.to_json()
    assert SamplingParams.from_json(merged).to_json() == merged


@given(tools)
def test_tool_settings_survive(settings: ToolSettings) -> None:
    assert ToolSettings.from_json(settings.to_json()) == settings
    assert "allowed" not in settings.to_public_json()


@given(
    st.builds(
        AnswerRequest,
        params=params,
        tools=st.none() | tools,
        continues=st.none() | st.integers(1, 99),
        compared_with=st.none() | st.integers(1, 99),
        settings=st.none() | answer_settings,
        preset=st.text(max_size=5),
    )
)
def test_an_answer_request_survives(request: AnswerRequest) -> None:
    data = request.to_json()
    assert AnswerRequest.from_json(data).to_json() == data
    again = AnswerRequest.from_json(data).without_other_answers().to_json()
    assert not {"continues", "beside"} & set(again)


@given(
    st.builds(
        PromptPrefix,
        tools_hash=st.text(alphabet="0123456789abcdef", max_size=16),
        summary=st.none() | st.integers(1, 9),
        pinned=st.none() | st.lists(st.integers(1, 9), max_size=4).map(tuple),
        front_bytes=st.integers(0, 9999),
        left_out=st.frozensets(st.integers(-9, -1), max_size=4),
    )
)
def test_a_prompt_prefix_survives(prefix: PromptPrefix) -> None:
    assert PromptPrefix.from_json(prefix.to_json()) == prefix


def test_rows_of_earlier_versions_are_read() -> None:
    request = AnswerRequest.from_json(
        {"params": {"max_tokens": 5}, "beside": 3, "continues": 2, "preset": ""}
    )
    assert (request.compared_with, request.continues, request.preset) == (3, 2, "")
    assert ToolSettings.from_json({}) == ToolSettings()
    assert PromptPrefix.from_json({"pinned": [1], "front": 9}) == PromptPrefix(
        pinned=(1,), front_bytes=9
    )
