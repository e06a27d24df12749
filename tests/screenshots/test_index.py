"""The page that shows all pictures."""

import pytest

from tests.screenshots.index import State, index_text, state_of


@pytest.mark.parametrize(
    ("page", "state"),
    [
        ("chat-empty", State.EMPTY),
        ("chat-long", State.LONG),
        ("not-found-error", State.ERROR),
        ("dataset-label", State.TYPICAL),
        ("chat", State.TYPICAL),
    ],
)
def test_the_name_of_a_page_says_its_state(page: str, state: State) -> None:
    assert state_of(page) == state


def test_the_index_shows_each_picture_under_its_page_and_nothing_else() -> None:
    text = index_text(["job-390-light.webp", "chat-empty-1440-light.webp", "chat.png"])
    assert text.index("## chat-empty: empty") < text.index("## job: typical")
    assert "![job, 390-light](job-390-light.webp)" in text
    assert "chat.png" not in text
