"""Sampling parameters: limits, null, defaults."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.generation.recipe.params import DEFAULT_PARAMS, SamplingParams
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError


def params(given_params: Any) -> dict[str, Any]:
    return dict(parse({"prompt": "Write.", "params": given_params}).params)


def test_a_recipe_has_the_defaults() -> None:
    assert params(None) == params({}) == DEFAULT_PARAMS


def test_null_takes_a_default_away_but_not_max_tokens() -> None:
    assert params({"temperature": None, "max_tokens": None, "min_p": None}) == {
        "temperature": None,
        "max_tokens": 300,
    }


def test_a_column_takes_a_parameter_of_the_recipe_away() -> None:
    column = {"name": "a", "kind": "text", "prompt": "x", "params": {"min_p": None, "top_k": 3}}
    recipe = parse({"columns": [column], "params": {"min_p": 0.1}})
    assert recipe.params_of(recipe.written[0]) == {
        "temperature": 0.9,
        "max_tokens": 300,
        "top_k": 3,
    }
    assert recipe.requests[0].params == {"temperature": 0.9, "top_k": 3}


def test_a_judge_is_strict_unless_it_says_otherwise() -> None:
    judge = {"name": "j", "kind": "judge", "criteria": [{"name": "q"}]}
    recipe = parse({"columns": [judge], "prompt": "x"})
    assert recipe.params_of(recipe.written[0]) == {"temperature": 0.0, "max_tokens": 200}
    recipe = parse({"columns": [judge | {"params": {"temperature": 1}}], "prompt": "x"})
    assert recipe.params_of(recipe.written[0])["temperature"] == 1


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("temperature", [0, 5, 0.5], [-0.1, 5.1, True, "1", float("nan"), [1]]),
        ("min_p", [0, 1], [1.1]),
        ("top_k", [0, 10_000], [10_001, 1.0, False]),
        ("presence_penalty", [-2, 2], [-2.1]),
        ("max_tokens", [1, 32_000], [0, 32_001, 10.0, "10"]),
        ("thinking", ["default", "on", "off", 0, 32_000], ["maybe", -1, 32_001, True, 1.5, ""]),
        ("reasoning_effort", ["low", "xhigh"], ["max", 1, ""]),
        ("stop", [["a"], ["a"] * 16], [[], ["a"] * 17, [""], ["x" * 201], "a", [1]]),
    ],
)
def test_params_take_values_within_their_limits_alone(
    name: str, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        assert params({name: value})[name] == value
    for value in bad:
        with pytest.raises(RecipeError, match="Must be") as caught:
            params({name: value})
        assert [problem.place for problem in caught.value.problems] == [("params", name)]


def test_every_wrong_parameter_is_reported() -> None:
    with pytest.raises(RecipeError) as caught:
        params({"temperature": 9, "top_k": -1})
    assert {problem.place[-1] for problem in caught.value.problems} == {"temperature", "top_k"}


def test_an_unknown_parameter_lists_the_known_ones() -> None:
    with pytest.raises(RecipeError, match=r"Unknown parameter\. Use temperature, .*, stop\."):
        params({"n": 1})


@pytest.mark.parametrize("value", [[], "x", 1, True])
def test_parameters_are_an_object(value: Any) -> None:
    with pytest.raises(RecipeError, match="Parameters are an object"):
        params(value)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.none() | st.floats(0, 5) | st.integers(0, 5),
            "max_tokens": st.integers(1, 32_000),
            "thinking": st.none()
            | st.sampled_from(["default", "on", "off"])
            | st.integers(0, 32_000),
            "stop": st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3),
        },
    )
)
def test_given_parameters_are_kept_as_they_are(given_params: dict[str, Any]) -> None:
    found = SamplingParams.model_validate(given_params)
    assert found.to_json() == given_params
    assert {name: type(value) for name, value in found.to_json().items()} == {
        name: type(value) for name, value in given_params.items()
    }
    assert SamplingParams.model_validate(found.to_json()) == found
