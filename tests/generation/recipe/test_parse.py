"""Recipes: the same request for the same row, quotas kept, every mistake named with its place."""

from collections import Counter
from typing import Any

import pytest

from apps.generation.recipe.parse import parse, to_json
from apps.generation.recipe.problems import RecipeError
from apps.generation.rows.replay import render_row, row_values
from tests.generation.recipe.columns.test_schemas import LABELLED

REVIEWS: dict[str, Any] = {
    "system": "You write realistic synthetic data.",
    "prompt": "Write a {{ sentiment }} review of a {{ product }}.",
    "attributes": {"sentiment": ["positive", "negative"], "product": ["kettle", "lamp"]},
    "quotas": {"sentiment": {"positive": 100, "negative": 100}},
    "schema": LABELLED,
    "params": {"temperature": 0.9, "min_p": 0.05, "max_tokens": 200},
}


def test_the_system_message_is_the_prompt_and_the_fields() -> None:
    row = render_row(parse(REVIEWS), 0, 7)
    assert row.messages[0] == {
        "role": "system",
        "content": "You write realistic synthetic data.\n\n"
        "Answer with one JSON object with these fields:\n"
        "- text: string, at most 300 characters\n"
        '- label: one of "positive", "negative"',
    }
    assert row.messages[1]["content"] == (
        f"Write a {row.values['sentiment']} review of a {row.values['product']}."
    )


def test_without_system_and_schema_there_is_only_the_question() -> None:
    row = render_row(parse({"prompt": "Hello"}), 0, 0)
    assert row.messages == ({"role": "user", "content": "Hello"},)


def test_every_row_begins_with_the_same_bytes() -> None:
    recipe = parse(REVIEWS)
    assert len({render_row(recipe, index, 7).messages[0]["content"] for index in range(50)}) == 1


def test_the_same_seed_gives_the_same_requests_in_any_order() -> None:
    recipe = parse(REVIEWS)
    forwards = [render_row(recipe, index, 7) for index in range(50)]
    backwards = [render_row(parse(REVIEWS), index, 7) for index in reversed(range(50))]
    assert forwards == backwards[::-1]
    assert forwards != [render_row(recipe, index, 8) for index in range(50)]
    assert len({row.seed for row in forwards}) == 50


def test_the_draw_is_the_same_on_every_machine() -> None:
    recipe = parse({"prompt": "{{ n }}", "attributes": {"n": [1, 2, 3, 4, 5, 6]}})
    assert [row_values(recipe, index, 7)["n"] for index in range(12)] == DRAWN


DRAWN = list("111156621641")


def test_quotas_are_kept_exactly() -> None:
    recipe = parse(REVIEWS, rows=200)
    drawn = [row_values(recipe, index, 7)["sentiment"] for index in range(200)]
    assert Counter(drawn) == {"positive": 100, "negative": 100}
    assert Counter(drawn[:40])["positive"] not in {0, 40}  # shuffled, not in blocks


def test_values_without_a_quota_share_the_other_rows() -> None:
    recipe = parse(
        {
            "prompt": "{{ c }}",
            "attributes": {"c": ["rare", "none", "b", "d"]},
            "quotas": {"c": {"rare": 5, "none": 0}},
        },
        rows=50,
    )
    drawn = Counter(row_values(recipe, index, 1)["c"] for index in range(50))
    assert drawn["rare"] == 5
    assert "none" not in drawn
    assert drawn["b"] + drawn["d"] == 45


def test_rows_beyond_the_quotas_keep_their_proportions() -> None:
    recipe = parse(REVIEWS, rows=200)
    drawn = Counter(row_values(recipe, index, 7)["sentiment"] for index in range(200, 400))
    assert drawn == {"positive": 100, "negative": 100}
    recipe = parse(REVIEWS | {"quotas": {"sentiment": {"positive": 200, "negative": 0}}}, rows=200)
    assert row_values(recipe, 300, 7)["sentiment"] == "positive"


def test_without_quotas_every_value_comes() -> None:
    recipe = parse({"prompt": "{{ n }}", "attributes": {"n": list("abcd")}})
    drawn = Counter(row_values(recipe, index, 3)["n"] for index in range(400))
    assert set(drawn) == set("abcd")
    assert min(drawn.values()) > 60


def test_what_is_stored_is_read_again_as_it_was() -> None:
    recipe = parse(REVIEWS, rows=200)
    assert parse(to_json(recipe)) == recipe


def test_the_long_form_of_columns() -> None:
    recipe = parse(
        {"prompt": "{{ a }}", "columns": [{"name": "a", "kind": "category", "values": ["x"]}]}
    )
    assert row_values(recipe, 0, 0) == {"a": "x"}


def test_the_schema_is_sent_so_that_the_server_enforces_it() -> None:
    sent = parse(REVIEWS).requests[0].response_format
    assert sent is not None
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["strict"] is True
    assert list(sent["json_schema"]["schema"]["properties"]) == ["text", "label"]


@pytest.mark.parametrize(
    ("change", "place", "sentence"),
    [
        ({"prompt": ""}, ("prompt",), "Enter a prompt"),
        ({"prompt": 5}, ("prompt",), "Enter a prompt"),
        ({"prompt": "{{ nothing }}"}, ("prompt",), "no column “nothing”"),
        ({"system": "It is {{ date }}"}, ("system",), "must be the same for every row"),
        ({"system": 5}, ("system",), "must be a string"),
        ({"attributes": ["a"]}, ("attributes",), "an object"),
        ({"attributes": {"a b": ["x"]}}, ("attributes", "a b"), "not a valid column name"),
        ({"attributes": {"a": []}}, ("attributes", "a"), "at least one value"),
        ({"attributes": {"a": "x"}}, ("attributes", "a"), "at least one value"),
        ({"attributes": {"a": [" "]}}, ("attributes", "a"), "empty"),
        (
            {"columns": [{"name": "u", "kind": "x"}]},
            ("columns", 0, "kind"),
            "Unknown column type “x”",
        ),
        ({"columns": [{"name": "product", "values": ["x"]}]}, ("columns", 0), "Two columns"),
        ({"quotas": {"size": {"big": 1}}}, ("quotas", "size"), "No category column “size”"),
        ({"quotas": {"product": {"sofa": 1}}}, ("quotas", "product"), "not a value"),
        ({"quotas": {"product": {"lamp": -1}}}, ("quotas", "product"), "number of rows"),
        ({"quotas": {"product": {"lamp": 201}}}, ("quotas", "product"), "the job has 200"),
        (
            {"quotas": {"product": {"lamp": 50, "kettle": 50}}},
            ("quotas", "product"),
            "they must be equal",
        ),
        ({"params": {"temperature": 9}}, ("params", "temperature"), "from 0 to 5"),
        ({"params": {"temperature": "hot"}}, ("params", "temperature"), "from 0 to 5"),
        ({"params": {"max_tokens": 1.5}}, ("params", "max_tokens"), "whole number"),
        ({"params": {"max_tokens": True}}, ("params", "max_tokens"), "whole number"),
        ({"params": {"n": 4}}, ("params", "n"), "Unknown parameter"),
        ({"schema": {"type": "array"}}, ("schema",), "Start the schema"),
        ({"shema": {}}, ("shema",), "Unknown recipe key"),
    ],
)
def test_parse_says_what_is_wrong_and_where(
    change: dict[str, Any], place: Any, sentence: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(REVIEWS | change, rows=200)
    assert any(
        problem.place == place and sentence in problem.message for problem in caught.value.problems
    ), caught.value.problems


def test_parse_reports_all_mistakes_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        parse({"prompt": "", "system": 5, "params": {"n": 1}})
    assert len(caught.value.problems) == 3
