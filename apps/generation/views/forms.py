"""The form for a new job: what was typed, kept as it was typed, and the plan it means."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from apps.batch.models import Batch
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.params import DEFAULT_PARAMS
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.recipe import MAX_ROWS, MAX_SEED, Recipe

DEFAULT_ROWS = 50
MAX_NAME = 200
# Those with a field of their own; all others stay in the recipe's JSON.
PARAMS = ("temperature", "min_p", "max_tokens", "thinking")
BUDGETS = (512, 1_024, 2_048, 4_096, 8_192)  # tokens of thought, to choose from


@dataclass(frozen=True)
class Plan:
    """A checked form."""

    name: str
    rows: int
    seed: int
    recipe: Recipe
    refill: bool = False
    near: float | None = None
    meaning: float | None = None
    test_dataset: int | None = None
    width: int | None = None
    weight: int = 1
    daily_tokens: int | None = None
    target: str = ""
    """See `targets.value_of`."""
    keep: bool = False


@dataclass
class Draft:
    name: str = ""
    target: str = ""
    """Server and model, see `targets.value_of`."""
    keep: bool = False
    """Whether the recipe is to be listed among the person's own."""
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
    """What the rows are meant to make better, as numbers; see `Job`."""
    errors: dict[str, str] = field(default_factory=dict)
    """By the name of the field on the page."""
    problems: list[Problem] = field(default_factory=list)
    """Of the columns, with their places."""
    earlier: Batch | None = None
    """Of the job that this one begins as a copy of."""
    is_untouched: bool = False
    """Nothing was chosen or typed yet."""

    @classmethod
    def of(cls, name: str, recipe: Mapping[str, Any]) -> "Draft":
        """A recipe in the API's words, to be changed on the page."""
        long = recipes.long_form(recipe)
        params = {**DEFAULT_PARAMS, **long.pop("params", {})}
        if others := {name: params[name] for name in params if name not in PARAMS}:
            long["params"] = others
        system = long.pop("system", "")
        return cls(
            name=name,
            system=system,
            recipe=json.dumps(long, ensure_ascii=False),
            params={name: _typed(params.get(name)) for name in PARAMS},
            seed=str(secrets.randbelow(10_000)),
        )

    @classmethod
    def blank(cls) -> "Draft":
        draft = cls.of("", {"columns": [{"name": "text", "kind": "text", "prompt": ""}]})
        draft.is_untouched = True
        return draft

    @classmethod
    def posted(cls, data: QueryDict) -> "Draft":
        def line(name: str) -> str:
            return data.get(name, "").strip()

        return cls(
            name=line("name"),
            target=line("target"),
            keep=bool(data.get("keep")),
            recipe=data.get("recipe", ""),
            system=data.get("system", "").strip(),
            rows=line("rows"),
            seed=line("seed"),
            params={name: line(name) for name in PARAMS if name in data},
            refill=bool(data.get("refill")),
            near=line("near"),
            meaning=line("meaning"),
            test_dataset=line("test_dataset"),
            width=line("width"),
            weight=line("weight") or "1",
            daily_tokens=line("daily_tokens"),
            for_dataset=line("for_dataset"),
            for_classifier=line("for_classifier"),
        )

    def read(self) -> Plan | None:
        """What is meant, or None with the sentences in `errors` and `problems`."""
        self.errors, self.problems = {}, []
        if not self.name:
            self._wrong("name", "Enter a job name.")
        elif len(self.name) > MAX_NAME:
            self._wrong("name", f"Up to {MAX_NAME} characters.")
        rows = self._whole("rows", 1, MAX_ROWS)
        seed = self._whole("seed", 0, MAX_SEED) if self.seed else secrets.randbelow(MAX_SEED)
        near = self._number(self.near, "near", 50, 100)
        meaning = self._number(self.meaning, "meaning", 50, 100)
        width = self._whole("width", 1, 1000) if self.width else None
        weight = self._whole("weight", 1, 100)
        daily = self._whole("daily_tokens", 1, 10**12) if self.daily_tokens else None
        recipe = self._recipe(rows)
        if recipe is None or self.errors:
            return None
        return Plan(
            self.name,
            rows,
            seed,
            recipe,
            refill=self.refill,
            near=None if near is None else near / 100,
            meaning=None if meaning is None else meaning / 100,
            test_dataset=int(self.test_dataset) if self.test_dataset.isdecimal() else None,
            width=width,
            weight=weight,
            daily_tokens=daily,
            target=self.target,
            keep=self.keep,
        )

    def _recipe(self, rows: int) -> Recipe | None:
        params: dict[str, Any] = {}
        for name, text in self.params.items():
            if name == "thinking" and text in {"", "on", "off"}:
                params[name] = text or None
            else:  # an empty field takes the default away
                params[name] = self._number(text, name, 0, 10**6)
        whole = {"max_tokens", "thinking"}
        try:
            body = json.loads(self.recipe or "{}")
            if not isinstance(body, dict):
                raise RecipeError.of("A recipe must be a JSON object.")
            others = body.get("params")
            params = {
                name: int(value)
                if name in whole and isinstance(value, float) and value.is_integer()
                else value
                for name, value in params.items()
                if name not in self.errors
            }
            body |= {
                "system": self.system,
                "params": {**others, **params} if isinstance(others, dict) else others or params,
            }
            return recipes.parse(body, rows=None if "rows" in self.errors else rows)
        except (ValueError, RecursionError) as error:
            if not isinstance(error, RecipeError):
                self._wrong("columns", f"The recipe is not valid JSON: {error}.")
                return None
            for problem in error.problems:
                self.report(problem)
        return None

    @property
    def thinking_choices(self) -> list[tuple[str, str]]:
        """What the select of thinking offers."""
        chosen = self.params.get("thinking", "")
        budgets = {str(tokens): f"Up to {tokens:,} tokens" for tokens in BUDGETS}
        if chosen.isdecimal():
            budgets.setdefault(chosen, f"Up to {chosen} tokens")
        return [("", "Off"), ("off", "Off, always sent"), ("on", "On"), *budgets.items()]

    def report(self, problem: Problem) -> None:
        """Where it stands on the page: at its column, or at a field of the form."""
        first = str(problem.place[0]) if problem.place else "columns"
        if first == "columns" and len(problem.place) > 1:
            self.problems.append(problem)
        elif first == "params" and len(problem.place) > 1:
            name = str(problem.place[1])
            if name in PARAMS:
                self._wrong(name, problem.message)
            else:  # it has no field: it stands in the JSON of the columns
                self._wrong("columns", f"Parameter {name}: {problem.message}")
        else:
            known = {"prompt": "columns", "params": "columns"}
            self._wrong(known.get(first, first), problem.message)

    def _wrong(self, name: str, sentence: str) -> None:
        self.errors.setdefault(name, sentence)

    def _whole(self, name: str, smallest: int, largest: int) -> int:
        text = getattr(self, name)
        if re.fullmatch(r"[0-9]{1,13}", text) and smallest <= int(text) <= largest:
            return int(text)
        self._wrong(name, f"Enter an integer from {smallest:,} to {largest:,}.")
        return smallest

    def _number(self, text: str, name: str, smallest: float, largest: float) -> float | None:
        if not text:
            return None
        text = text.replace(",", ".")
        if re.fullmatch(r"[0-9]{1,7}(\.[0-9]{0,6})?", text) and smallest <= float(text) <= largest:
            return float(text)
        example = "0.9" if smallest == 0 else "85"
        limits = "" if smallest == 0 else f", from {smallest:g} to {largest:g}"
        self._wrong(name, f"Enter a number, such as {example}{limits}.")
        return None


def _typed(value: Any) -> str:
    """A parameter as its field shows it; nothing where it is left to the server."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
