"""Properties of imports: any tree becomes questions and answers in turn, and loses no text."""

import io
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.chat.transfer import read
from apps.chat.transfer.normalise import (
    ImportedCall,
    ImportedMessage,
    MessageContent,
    Unreadable,
    make_call,
    normalise_tree,
    parse_time,
)

ROLES = ["user", "assistant", "tool", "system", ""]
words = st.text(alphabet="abc ", max_size=6)
arguments_of_calls = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@st.composite
def trees(draw: st.DrawFn) -> list[ImportedMessage]:
    messages: list[ImportedMessage] = []
    for number in range(draw(st.integers(0, 12))):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        content = MessageContent(f"{draw(words)}#{number}" if draw(st.booleans()) else "")
        if draw(st.booleans()):
            content = content.followed_by(MessageContent(calls=(make_call("sum", "{}"),)))
        messages.append(
            ImportedMessage(
                str(number), None if parent is None else str(parent),
                draw(st.sampled_from(ROLES)), content,
            )
        )  # fmt: skip
    return messages


def check(messages: list[ImportedMessage]) -> None:
    seen: dict[str | None, str] = {None: ""}
    for message in messages:
        assert message.parent in seen  # parents come first
        assert message.role in {"user", "assistant"}
        assert seen[message.parent] != message.role
        assert message.key not in seen
        seen[message.key] = message.role
        rounds = [call.round for call in message.content.calls]
        assert rounds == sorted(rounds)
        for call in message.content.calls:
            assert 0 <= call.text_to <= len(message.content.content)
            assert 0 <= call.reasoning_to <= len(message.content.reasoning)
        if message.parent is None:
            assert message.role == "user"


@given(trees(), st.none() | st.integers(0, 12))
def test_any_tree_becomes_questions_and_answers_in_turn(
    messages: list[ImportedMessage], active: int | None
) -> None:
    texts = [m.content.content for m in messages if m.role in {"user", "assistant"}]
    found, leaf = normalise_tree(messages, None if active is None else str(active))
    check(found)
    assert leaf is None or leaf in {message.key for message in found}
    whole = "\n".join(message.content.content for message in found)
    assert all(text in whole for text in texts if text.strip())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_a_loop_or_a_missing_parent_is_refused(edges: list[tuple[int, int]]) -> None:
    messages = [
        ImportedMessage(str(key), str(parent), "user", MessageContent("x"))
        for key, parent in dict(edges).items()
    ]
    with pytest.raises(Unreadable, match=r"loop|missing"):
        normalise_tree(messages, None)


@given(
    st.lists(st.tuples(words, words, st.booleans()), min_size=1, max_size=6),
)
def test_joined_contents_have_all_texts_and_calls(parts: list[tuple[str, str, bool]]) -> None:
    joined = MessageContent()
    for text, reasoning, with_call in parts:
        calls = (ImportedCall("sum", "{}", text_to=len(text)),) if with_call else ()
        joined = joined.followed_by(MessageContent(text, reasoning, calls))
    assert len(joined.calls) == sum(with_call for *_, with_call in parts)
    assert all(text in joined.content for text, _, _ in parts)
    positions = [call.text_to for call in joined.calls]
    assert positions == sorted(positions)


@given(st.text(max_size=300), arguments_of_calls)
def test_any_call_has_a_plain_name_and_an_object(name: str, arguments: object) -> None:
    call = make_call(name, arguments)
    assert call.name
    assert len(call.name) <= 200
    assert call.name.replace("_", "").replace("-", "").isalnum() or set(call.name) <= {"-", "_"}
    assert isinstance(json.loads(call.arguments), dict)


@given(st.integers() | st.floats() | st.text(max_size=30) | st.none() | st.booleans())
def test_any_value_is_a_time_or_none(value: object) -> None:
    found = parse_time(value)
    assert found is None or found.tzinfo is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["mapping", "chat", "history", "messages", "message", "content", "author", "role",
                 "parts", "parent", "parentId", "id", "currentId", "title", "output", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(json_values, max_size=3))
def test_any_json_is_conversations_or_a_sentence(items: list[Any]) -> None:
    try:
        found = list(read.read(io.BytesIO(json.dumps(items).encode())))
    except read.BadFile as error:
        found, sentence = [], str(error)
    else:
        sentence = ""
    assert not sentence or sentence.endswith(".")
    for one in found:
        assert one.messages
        check(one.messages)
