"""Properties of event replay: any reader, from any position, gets the same answer."""

from hypothesis import given
from hypothesis import strategies as st

from apps.chat.streaming.events import (
    Snapshot,
    StreamEvent,
    ToolCallEvent,
    compact_json,
    replay,
)

texts = st.text(max_size=20)
calls = st.builds(
    ToolCallEvent,
    id=st.integers(1, 4),
    answer=st.just(7),
    call_id=texts,
    round=st.integers(1, 5),
    name=texts,
    arguments=texts,
    at=st.integers(0, 100),
    state=st.sampled_from(["waiting", "running", "done"]),
    result=texts,
)


def encode(number: int, event: str, value: object) -> StreamEvent:
    if isinstance(value, ToolCallEvent):
        value = {name: getattr(value, name) for name in ToolCallEvent.__slots__}
    data = {"text": value} if event in {"token", "reasoning"} else value
    return StreamEvent(number, event, compact_json(data))


@st.composite
def streams(draw: st.DrawFn) -> list[StreamEvent]:
    parts = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("token"), texts),
                st.tuples(st.just("reasoning"), texts),
                st.tuples(st.sampled_from(["tool_call", "tool_result"]), calls),
                st.tuples(st.just("progress"), st.just({"total": 1})),
                st.tuples(st.just("queued"), st.just({})),
            ),
            max_size=30,
        )
    )
    end = draw(
        st.sampled_from(
            [None, ("done", {"finish_reason": "stop"}), ("done", {"finish_reason": "stopped"}),
             ("error", {"code": "x"})]
        )
    )  # fmt: skip
    if end:
        parts.append(end)
    return [encode(number, *part) for number, part in enumerate(parts, 1)]


@given(streams(), st.integers(0, 30))
def test_a_checkpoint_replaces_what_comes_before_it(
    events: list[StreamEvent], position: int
) -> None:
    before, after = events[:position], events[position:]
    checkpoint = StreamEvent(position, "snapshot", replay(before).as_json())
    assert replay([checkpoint, *after]) == replay(events)


@given(streams())
def test_a_snapshot_survives_its_json(events: list[StreamEvent]) -> None:
    snapshot = replay(events)
    assert Snapshot.from_json(snapshot.as_json()) == snapshot


@given(streams())
def test_text_is_every_token_in_order(events: list[StreamEvent]) -> None:
    tokens = [event for event in events if event.event == "token"]
    assert replay(events).text == replay(tokens).text
    assert len({call.id for call in replay(events).calls}) == len(replay(events).calls)


@given(streams())
def test_the_end_decides_the_status(events: list[StreamEvent]) -> None:
    status = replay(events).status
    if events and events[-1].is_end:
        assert status in {"complete", "stopped", "failed"}
    else:
        assert status in {"queued", "streaming"}
