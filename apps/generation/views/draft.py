"""The form of a new job: the values as typed, and the job that they ask for."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from apps.batch.models import Batch
from apps.generation.job_request import JobRequest
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.params import DEFAULT_PARAMS
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_ROWS, MAX_SEED, Recipe
from apps.generation.views.form_errors import PARAMS, FieldErrors, FormErrors
from apps.generation.views.form_numbers import (
    as_typed,
    fraction,
    key_of,
    parameter,
    thinking_options,
    whole_number,
)
from apps.llm.thinking import thinking_choices

DEFAULT_ROWS = 50
MAX_NAME = 200
LINES = (
    *("name", "target", "system", "rows", "seed", "near", "meaning", "test_dataset", "width"),
    *("weight", "daily_tokens", "for_dataset", "for_classifier"),
)


@dataclass
class Draft(FormErrors):
    name: str = ""
    target: str = ""
    """Server and model, see `targets.choice_value`."""
    all_servers: bool = True
    """Every server with the same model works on the job."""
    keep: bool = False
    """List the recipe among the person's own."""
    recipe: str = ""
    """The recipe as JSON, as the editor writes it; `PARAMS` stand in fields of their own."""
    system: str = ""
    rows: str = str(DEFAULT_ROWS)
    seed: str = ""
    params: dict[str, str] = field(default_factory=dict)
    refill: bool = True
    near: str = ""
    meaning: str = ""
    test_dataset: str = ""
    width: str = ""
    weight: str = "1"
    daily_tokens: str = ""
    for_dataset: str = ""
    for_classifier: str = ""
    """Primary keys of what the rows are to improve; see `Job`."""
    earlier_batch: Batch | None = None
    """Of the job that this one copies."""
    saved_recipe: int | None = None
    """Primary key of the saved recipe that it comes from."""

    @classmethod
    def from_recipe(cls, name: str, recipe: Mapping[str, Any]) -> "Draft":
        """A draft of a recipe in its JSON form."""
        long = recipes.long_form(recipe)
        params = {**DEFAULT_PARAMS, **long.pop("params", {})}
        if others := {name: params[name] for name in params if name not in PARAMS}:
            long["params"] = others
        system = long.pop("system", "")
        return cls(
            name=name,
            system=system,
            recipe=json.dumps(long, ensure_ascii=False),
            params={name: as_typed(params.get(name)) for name in PARAMS},
            seed=str(secrets.randbelow(10_000)),
        )

    @classmethod
    def blank(cls) -> "Draft":
        """One text column, still without a prompt."""
        return cls.from_recipe("", {"columns": [{"name": "text", "kind": "text", "prompt": ""}]})

    @classmethod
    def posted(cls, data: QueryDict) -> "Draft":
        def line(name: str) -> str:
            return data.get(name, "").strip()

        draft = cls(
            all_servers=bool(data.get("all_servers")),
            keep=bool(data.get("keep")),
            recipe=data.get("recipe", ""),
            params={name: line(name) for name in PARAMS if name in data},
            refill=bool(data.get("refill")),
        )
        for name in LINES:
            setattr(draft, name, line(name))
        draft.weight = draft.weight or "1"
        return draft

    def read(self) -> JobRequest | None:
        """The job, or None with the sentences in `errors` and `problems`."""
        self.errors, self.problems = FieldErrors(), []
        if not self.name:
            self.report_field("name", "Enter a job name.")
        elif len(self.name) > MAX_NAME:
            self.report_field("name", f"Up to {MAX_NAME} characters.")
        rows = self._parsed("rows", 1, whole_number, self.rows, 1, MAX_ROWS)
        seed = secrets.randbelow(MAX_SEED)
        if self.seed:
            seed = self._parsed("seed", 0, whole_number, self.seed, 0, MAX_SEED)
        near = self._parsed("near", None, fraction, self.near)
        meaning = self._parsed("meaning", None, fraction, self.meaning)
        width = daily_tokens = None
        if self.width:
            width = self._parsed("width", None, whole_number, self.width, 1, 1000)
        weight = self._parsed("weight", 1, whole_number, self.weight, 1, 100)
        if self.daily_tokens:
            daily_tokens = self._parsed(
                "daily_tokens", None, whole_number, self.daily_tokens, 1, 10**12
            )
        recipe = self._recipe(rows)
        if recipe is None or self.errors:
            return None
        return JobRequest(
            name=self.name,
            rows=rows,
            seed=seed,
            recipe=recipe,
            refill=self.refill,
            near=near,
            meaning=meaning,
            test_dataset=key_of(self.test_dataset) or None,
            width=width,
            weight=weight,
            daily_tokens=daily_tokens,
            all_servers=self.all_servers,
            keep_recipe=self.keep,
        )

    def _recipe(self, rows: int) -> Recipe | None:
        parsed = {
            name: self._parsed(name, None, parameter, name, text)
            for name, text in self.params.items()
        }
        params = {name: value for name, value in parsed.items() if name not in self.errors}
        try:
            body = json.loads(self.recipe or "{}")
            if not isinstance(body, dict):
                raise RecipeError.one("A recipe must be a JSON object.")
            others = body.get("params")
            body |= {
                "system": self.system,
                "params": {**others, **params} if isinstance(others, dict) else others or params,
            }
            return recipes.parse(body, rows=None if "rows" in self.errors else rows)
        except (ValueError, RecursionError) as error:
            if not isinstance(error, RecipeError):
                self.report_field("columns", f"The recipe is not valid JSON: {error}.")
                return None
            self.report_all(error)
        return None

    @property
    def thinking_choices(self) -> list[tuple[str, str]]:
        """Values and labels of the select for thinking."""
        return thinking_options(self.params.get("thinking", ""))

    @property
    def column_thinking_choices(self) -> list[tuple[str, str]]:
        """The same for one column: without a setting of its own, it takes the job's."""
        return [("", "Job default"), *thinking_choices("", first="off")]

    def _parsed(self, name: str, default: Any, parse: Callable[..., Any], *arguments: Any) -> Any:
        """The value of a field; its default, and a sentence, where it cannot be parsed."""
        try:
            return parse(*arguments)
        except ValueError as error:
            self.report_field(name, str(error))
            return default
