"""A thought in the text of an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.llm.events import Reasoning, Token
from apps.llm.stream.think_tags import ThinkTags


def parted(*pieces: str) -> tuple[str, str]:
    """Thought and answer."""
    tags = ThinkTags()
    events = [event for piece in pieces for event in tags.feed(piece)] + list(tags.end())
    assert all(event.text for event in events if isinstance(event, Reasoning | Token))
    thought = "".join(event.text for event in events if isinstance(event, Reasoning))
    return thought, "".join(event.text for event in events if isinstance(event, Token))


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>hm</think>Yes", "hm", "Yes"),
        ("\n<think>\nhm\n</think>\n\nYes", "\nhm\n", "Yes"),
        ("<think>hm", "hm", ""),
        ("<think></think>Yes", "", "Yes"),
        ("Yes <think>not one</think>", "", "Yes <think>not one</think>"),
        ("<thin ice", "", "<thin ice"),
        ("<thi", "", "<thi"),
        ("<think>a </thin b</think>c", "a </thin b", "c"),
        ("", "", ""),
    ],
)
def test_think_tags_are_found_however_the_text_is_cut(text: str, thought: str, answer: str) -> None:
    for size in (1, 2, 3, 7, 100):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert parted(*pieces) == (thought, answer)


@given(st.lists(st.sampled_from(["<", "think", ">", "</", "/think>", "<think>", "a", " "])))
@settings(max_examples=150, deadline=None)
def test_cuts_change_nothing_and_nothing_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert parted(*pieces) == parted(*text) == parted(text)
    if not text.lstrip().startswith("<think>"):
        assert parted(text) == ("", text)
