"""One workbench with something in every room, for all tests of this folder."""

import pytest
from playwright.sync_api import Browser

from tests.journeys.conftest import Login, tab
from tests.journeys.every_page.rooms import (
    Rooms,
    batch_of_a_program,
    fill_the_rooms,
    write_questions,
)
from tests.stack import Stack


@pytest.fixture(scope="package")
def rooms(
    stack: Stack, chromium: Browser, logged_in: Login, tmp_path_factory: pytest.TempPathFactory
) -> Rooms:
    folder = tmp_path_factory.mktemp("rooms")
    questions = folder / "questions.csv"
    write_questions(questions)
    with tab(stack, chromium, logged_in) as page:
        real = fill_the_rooms(page, folder, questions)
        real["servers/batches", "pk"] = batch_of_a_program(stack, page, folder)
        return real
