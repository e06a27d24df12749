"""The list of pages, their scenes, and the page that shows the pictures."""

import pytest

from tests.screenshots.index import index_text
from tests.screenshots.pages import PAGES
from tests.screenshots.scenes.empty import BEGUN, NEW
from tests.screenshots.scenes.errors import AWAY, ERRORS
from tests.screenshots.scenes.long import LONG
from tests.screenshots.scenes.typical import TYPICAL
from tests.screenshots.state import State, scene_name, state_of

SCENES = [scene.name for scene in (*NEW, *BEGUN, *TYPICAL, *LONG, *AWAY, *ERRORS)]
STATES = [(page, state) for page in PAGES for state in State]


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        ("chat-new-empty", State.EMPTY),
        ("chat-long", State.LONG),
        ("not-found-error", State.ERROR),
        ("dataset-label", State.TYPICAL),
        ("chat", State.TYPICAL),
    ],
)
def test_the_name_of_a_scene_says_its_state(scene: str, state: State) -> None:
    assert state_of(scene) == state


def test_every_state_of_every_page_has_a_scene_or_a_reason() -> None:
    without = [
        scene_name(page.name, state)
        for page, state in STATES
        if (scene_name(page.name, state) in SCENES) == bool(page.reason(state))
    ]
    assert without == []


def test_every_scene_is_of_a_listed_page_and_stands_once() -> None:
    known = {scene_name(page.name, state) for page, state in STATES}
    assert set(SCENES) <= known
    assert len(SCENES) == len(set(SCENES))


def test_the_index_shows_each_picture_or_says_why_there_is_none() -> None:
    text = index_text(["job-390-light.webp", "chat-new-empty-1440-light.webp", "chat.png"])
    assert text.index("## chat-new-empty") < text.index("## job\n")
    assert "![job, 390-light](job-390-light.webp)" in text
    assert "[shown](#chat-new-empty)" in text
    assert "A form: typical shows it empty" in text
    assert "chat.png" not in text
