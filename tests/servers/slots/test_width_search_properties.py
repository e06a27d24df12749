"""The search for a server's width, through any order of starts, ends and refusals."""

from hypothesis import given
from hypothesis import strategies as st

from apps.servers.slots.width_search import MAX_WIDTH, WidthSearch

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "finish", "finish", "drop", "refuse", "pause"]),
        st.floats(0, 5),
        st.floats(0, 1e6),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, MAX_WIDTH))
def test_width_stays_from_1_to_the_largest_and_falls_when_refused(
    steps: list[tuple[str, float, float]], first: int
) -> None:
    search, now, flying = WidthSearch(0.0, first), 0.0, list[int]()
    for number, (step, seconds, work) in enumerate(steps):
        now += seconds
        before = search.width
        match step:
            case "refuse":
                search.refused(now)
                assert search.width <= before
            case "pause":
                search.pause(now)
                flying.clear()
            case "finish" | "drop" if flying:
                request = flying.pop(0)
                if step == "drop":
                    search.dropped(request, now)
                elif search.finished(request, work, now) is False:
                    assert search.width == before
            case _:
                flying.append(number)
                search.started(number, now)
        assert 1 <= search.width <= MAX_WIDTH
        assert search.reason
