"""Sampling parameters of a recipe or a column (pure)."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from annotated_types import Ge, Le, Len
from pydantic import StrictFloat, StrictInt, StrictStr, model_validator

from apps.generation.recipe.fields import Part, Says
from apps.generation.recipe.problems import Problem
from apps.llm.thinking import EXPECTED, Effort, StoredThinking

ParamValue = int | float | str | list[str] | None
Params = Mapping[str, ParamValue]

# Every recipe has them, unless it says null. Nothing that only some servers take.
DEFAULT_PARAMS: dict[str, ParamValue] = {"temperature": 0.9, "max_tokens": 300}
MAX_STOPS, MAX_STOP = 16, 200  # texts, characters of one
PARAM_LABELS = {"min_p": "min-p", "top_p": "top-p", "top_k": "top-k"}
"""Others are named as they are, with spaces."""
# Not sent as they are: `rows.generate_row` converts them.
CONVERTED = ("max_tokens", "thinking", "reasoning_effort")

Temperature = Annotated[
    Annotated[StrictInt, Ge(0), Le(5)] | Annotated[StrictFloat, Ge(0), Le(5)],
    Says("Must be a number from 0 to 5.", null=True),
]
Probability = Annotated[
    Annotated[StrictInt, Ge(0), Le(1)] | Annotated[StrictFloat, Ge(0), Le(1)],
    Says("Must be a number from 0 to 1.", null=True),
]
Penalty = Annotated[
    Annotated[StrictInt, Ge(-2), Le(2)] | Annotated[StrictFloat, Ge(-2), Le(2)],
    Says("Must be a number from -2 to 2.", null=True),
]


class SamplingParams(Part):
    """Null takes a default, or a parameter of the recipe, away."""

    NOT_AN_OBJECT = "Parameters are an object, such as temperature and max_tokens."

    temperature: Temperature | None = None
    min_p: Probability | None = None
    top_p: Probability | None = None
    top_k: (
        Annotated[
            Annotated[StrictInt, Ge(0), Le(10_000)],
            Says("Must be a whole number from 0 to 10000.", null=True),
        ]
        | None
    ) = None
    repeat_penalty: Temperature | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    max_tokens: (
        Annotated[
            Annotated[StrictInt, Ge(1), Le(32_000)],
            Says("Must be a whole number from 1 to 32000.", null=True),
        ]
        | None
    ) = None
    thinking: Annotated[StoredThinking, Says(EXPECTED, null=True)] | None = None
    """Null: off."""
    reasoning_effort: (
        Annotated[Effort, Says(f"Must be one of {', '.join(get_args(Effort))}.", null=True)] | None
    ) = None
    stop: (
        Annotated[
            Annotated[list[Annotated[StrictStr, Len(1, MAX_STOP)]], Len(1, MAX_STOPS)],
            Says(
                f"Must be a list of 1 to {MAX_STOPS} texts of at most {MAX_STOP} characters.",
                null=True,
            ),
        ]
        | None
    ) = None

    @classmethod
    def unknown_key(cls, key: str, data: Mapping[str, Any]) -> Problem:
        known = ", ".join(cls.model_fields)
        return Problem((key,), f"Unknown parameter. Use {known}.")

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_limit(cls, data: Any) -> Any:
        """No request goes without max_tokens."""
        if isinstance(data, Mapping) and data.get("max_tokens", 0) is None:
            return {name: value for name, value in data.items() if name != "max_tokens"}
        return data

    def with_defaults(self) -> dict[str, ParamValue]:
        """A null stays where it takes a default away."""
        given = {
            name: value
            for name, value in self.to_json().items()
            if value is not None or name in DEFAULT_PARAMS
        }
        return {**DEFAULT_PARAMS, **given}
