"""Questions and replies of a row as one stored text, and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.parse import parse
from apps.generation.recipe.recipe import Recipe
from apps.generation.rows.row_texts import (
    REPEATED,
    join_texts,
    repeated_questions,
    split_texts,
    used_replies,
)

SINGLE = parse({"prompt": "Write."})
CHAT = parse(
    {
        "columns": [
            {"name": "question", "kind": "text", "prompt": "Ask."},
            {"name": "answer", "kind": "text", "prompt": "Answer."},
        ]
    }
)
RECIPES = pytest.mark.parametrize("recipe", [SINGLE, CHAT], ids=["single", "conversation"])


@RECIPES
@given(texts=st.lists(st.text(min_size=1), max_size=4))
def test_texts_are_read_again_as_they_were(recipe: Recipe, texts: list[str]) -> None:
    assert split_texts(recipe, join_texts(recipe, texts)) == texts


def test_one_text_is_stored_as_it_is() -> None:
    assert join_texts(SINGLE, ["A text."]) == "A text."
    assert join_texts(CHAT, ["A text."]) == '["A text."]'


@RECIPES
def test_nothing_is_stored_for_no_text(recipe: Recipe) -> None:
    assert join_texts(recipe, []) == ""
    assert split_texts(recipe, "") == []


@pytest.mark.parametrize("stored", ['["A", "B', "no list", '"A"', "7"])
def test_a_stored_text_that_was_cut_is_one_text(stored: str) -> None:
    assert split_texts(CHAT, stored) == [stored]


def test_a_question_that_was_repeated_is_marked() -> None:
    prompt = join_texts(CHAT, ["Ask.", {REPEATED: "Not valid JSON."}, "Answer."])
    assert split_texts(CHAT, prompt) == ["Ask.", "Not valid JSON.", "Answer."]
    assert repeated_questions(CHAT, prompt) == [False, True, False]


def test_the_reply_to_the_repeated_question_counts() -> None:
    prompt = join_texts(CHAT, ["Ask.", {REPEATED: "Again."}, "Answer."])
    replies = join_texts(CHAT, ["{", "Where?", "Here."])
    assert used_replies(CHAT, prompt, replies) == ["Where?", "Here."]
    assert used_replies(CHAT, prompt, join_texts(CHAT, ["{"])) == []
    assert used_replies(SINGLE, "Write.", "A text.") == ["A text."]


def test_a_repeated_question_of_a_recipe_with_one_column() -> None:
    prompt = join_texts(SINGLE, ["Write.", {REPEATED: "Once more."}])
    assert used_replies(SINGLE, prompt, join_texts(SINGLE, ["", "A text."])) == ["A text."]
    assert json.loads(prompt[1:])[1] == {REPEATED: "Once more."}
