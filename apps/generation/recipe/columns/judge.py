"""The column in which the model scores its own row (pure)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SkipValidation,
    StrictInt,
    StrictStr,
    model_validator,
)

from apps.generation.recipe.columns.written import Written
from apps.generation.recipe.fields import Part, Prompt, Says, String, valid_name
from apps.generation.recipe.params import ParamValue
from apps.generation.recipe.problems import Problem, RecipeError

JUDGE_PROMPT = "Judge what you wrote above, strictly. Give the reason first, then the scores."
JUDGE_PARAMS: Mapping[str, ParamValue] = {"temperature": 0.0, "max_tokens": 200}
MAX_CRITERIA = 10
NO_CRITERION = "A criterion needs a name and a description."


class Criterion(Part):
    NOT_AN_OBJECT = NO_CRITERION

    name: Annotated[StrictStr, Says(NO_CRITERION), AfterValidator(valid_name)]
    description: Annotated[String, AfterValidator(str.strip)] = ""
    largest: Annotated[
        Annotated[StrictInt, Ge(2), Le(100)], Says("Must be an integer from 2 to 100.")
    ] = Field(5, alias="max")
    at_least: SkipValidation[int] = 0
    """A row with a lower score is rejected; 0 for none."""

    @classmethod
    def unknown_key(cls, key: str, data: Mapping[str, Any]) -> Problem:
        return Problem((), f"Unknown criterion key “{key}”.")

    @model_validator(mode="after")
    def _check_threshold(self) -> Self:
        whole = isinstance(self.at_least, int) and not isinstance(self.at_least, bool)
        if not whole or not 0 <= self.at_least <= self.largest:
            message = f"Must be an integer from 0 to {self.largest:,}."
            raise RecipeError([Problem(("at_least",), message)])
        return self


def _check_count(criteria: Any) -> Any:
    if not isinstance(criteria, list) or not 1 <= len(criteria) <= MAX_CRITERIA:
        raise RecipeError.one(f"A judge needs 1 to {MAX_CRITERIA} criteria.")
    return criteria


def _check_unique(criteria: list[Criterion]) -> list[Criterion]:
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise RecipeError.one("Two criteria have the same name.")
    return criteria


class Judge(Written):
    """Scores the model gives its row, each with a threshold; the reason comes first."""

    INTERNAL = frozenset({"checks", "candidates"})

    kind: Literal["judge"]
    prompt: Annotated[Prompt, BeforeValidator(lambda prompt: prompt or JUDGE_PROMPT)] = JUDGE_PROMPT
    criteria: Annotated[
        list[Criterion], BeforeValidator(_check_count), AfterValidator(_check_unique)
    ]

    @property
    def own_params(self) -> dict[str, ParamValue]:
        return {**JUDGE_PARAMS, **self.params.to_json()}

    @cached_property
    def answer_schema(self) -> Mapping[str, Any] | None:
        scores = {
            criterion.name: {
                "type": "integer",
                "enum": list(range(1, criterion.largest + 1)),
                "description": criterion.description,
            }
            for criterion in self.criteria
        }
        return {
            "type": "object",
            "required": [self.reason_name, *scores],
            "properties": {self.reason_name: {"type": "string", "maxLength": 300}, **scores},
        }

    @cached_property
    def has_checks(self) -> bool:
        return True

    @property
    def reason_name(self) -> str:
        return f"{self.name}_reason"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.reason_name, *(criterion.name for criterion in self.criteria))
