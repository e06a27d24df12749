"""The form for a new job: what was typed, kept as it was typed, and the recipe it means."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from apps.generation import schemas
from apps.generation.problems import Problem, RecipeError
from apps.generation.recipe import DEFAULT_PARAMS, MAX_ROWS, Recipe, parse

DEFAULT_ROWS = 50
MAX_NAME = 200
MAX_SEED = 2**31 - 1

KINDS = {
    "string": "Text",
    "enum": "One of",
    "integer": "Whole number",
    "number": "Number",
    "boolean": "True or false",
    "list": "List of texts",
}
# Where on the page the sentence stands that belongs to a part of the recipe.
PLACES = {
    **{name: name for name in ("prompt", "system")},
    **dict.fromkeys(("attributes", "columns", "quotas"), "attributes"),
    "schema": "fields",
}


@dataclass
class ColumnDraft:
    name: str = ""
    values: str = ""
    """Separated by commas, or one a line where a value holds a comma."""


@dataclass
class FieldDraft:
    """One line of the field editor."""

    name: str = ""
    kind: str = "string"
    required: bool = True
    limit: str = ""
    values: str = ""

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any], required: bool) -> "FieldDraft":
        if "enum" in schema:
            return cls(name, "enum", required, values=", ".join(map(str, schema["enum"])))
        kind = "list" if schema.get("type") == "array" else schema.get("type", "string")
        return cls(name, kind, required, limit=str(schema.get("maxLength", "")))

    def schema(self) -> dict[str, Any]:
        """
        Raises:
            RecipeError: the limit is no number, or there is nothing to choose from.
        """
        match self.kind:
            case "enum":
                values = split_values(self.values)
                if not values:
                    raise RecipeError.of(f"“{self.name}” needs at least one value to choose from.")
                return {"type": "string", "enum": values}
            case "list":
                return {"type": "array", "items": {"type": "string"}, "maxItems": 10}
            case "string" if self.limit:
                return {"type": "string", "maxLength": self._limit()}
            case kind:
                return {"type": kind}

    def _limit(self) -> int:
        if not self.limit.isdecimal() or not 0 < int(self.limit) <= schemas.MAX_LENGTH:
            raise RecipeError.of(
                f"“{self.name}”: the largest length is a number from 1 to {schemas.MAX_LENGTH:,}."
            )
        return int(self.limit)


@dataclass
class Draft:
    name: str = ""
    system: str = ""
    prompt: str = ""
    rows: str = str(DEFAULT_ROWS)
    temperature: str = str(DEFAULT_PARAMS["temperature"])
    max_tokens: str = str(int(DEFAULT_PARAMS["max_tokens"]))
    seed: str = ""
    columns: list[ColumnDraft] = field(default_factory=list)
    fields: list[FieldDraft] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """By the name of the field on the page."""

    @classmethod
    def blank(cls) -> "Draft":
        return cls(columns=[ColumnDraft()], seed=str(secrets.randbelow(10_000)))

    @classmethod
    def of(cls, name: str, recipe: Mapping[str, Any]) -> "Draft":
        """A recipe in the API's words, to be changed on the page."""
        schema = recipe.get("schema") or {}
        params = {**DEFAULT_PARAMS, **recipe.get("params", {})}
        return cls(
            name=name,
            system=recipe.get("system", ""),
            prompt=recipe["prompt"],
            temperature=str(params["temperature"]),
            max_tokens=str(int(params["max_tokens"])),
            seed=str(secrets.randbelow(10_000)),
            columns=[
                ColumnDraft(column, joined_values(values))
                for column, values in recipe.get("attributes", {}).items()
            ],
            fields=[
                FieldDraft.of(field_name, inner, field_name in schema.get("required", []))
                for field_name, inner in schema.get("properties", {}).items()
            ],
        )

    @classmethod
    def posted(cls, data: QueryDict) -> "Draft":
        def line(name: str) -> str:
            return data.get(name, "").strip()

        columns = zip(data.getlist("column_name"), data.getlist("column_values"), strict=False)
        fields = zip(
            *(data.getlist(f"field_{part}") for part in ("name", "kind", "required", "limit")),
            data.getlist("field_values"),
            strict=False,
        )
        return cls(
            system=data.get("system", ""),
            prompt=data.get("prompt", ""),
            columns=[
                ColumnDraft(name.strip(), values)
                for name, values in columns
                if name.strip() or values.strip()
            ],
            fields=[
                FieldDraft(name.strip(), kind, required == "yes", limit.strip(), values)
                for name, kind, required, limit, values in fields
                if name.strip()
            ],
            name=line("name"),
            rows=line("rows"),
            temperature=line("temperature"),
            max_tokens=line("max_tokens"),
            seed=line("seed"),
        )

    def read(self) -> "Plan | None":
        """What is meant, or None with the sentences in `errors`."""
        self.errors = {}
        if not self.name:
            self._wrong("name", "Give the job a name.")
        elif len(self.name) > MAX_NAME:
            self._wrong("name", f"At most {MAX_NAME} characters.")
        rows = self._whole("rows", 1, MAX_ROWS)
        seed = self._whole("seed", 0, MAX_SEED) if self.seed else secrets.randbelow(MAX_SEED)
        body = self._body()
        if body is None:
            return None
        try:
            recipe = parse(body, rows=rows)
        except RecipeError as error:
            for problem in error.problems:
                self._report(problem)
            return None
        return None if self.errors else Plan(self.name, rows, seed, recipe)

    def _body(self) -> dict[str, Any] | None:
        """In the API's words."""
        attributes: dict[str, list[str]] = {}
        for column in self.columns:
            if column.name in attributes:
                self._wrong("attributes", f"There are two columns named “{column.name}”.")
            attributes[column.name] = split_values(column.values)
        body = {
            "system": self.system.strip(),
            "prompt": self.prompt.strip(),
            "attributes": attributes,
            "params": {
                **DEFAULT_PARAMS,
                "temperature": self._number("temperature"),
                "max_tokens": self._whole("max_tokens", 1, 32_000),
            },
        }
        try:
            if self.fields:
                body["schema"] = schema_of(self.fields)
        except RecipeError as error:
            self._wrong("fields", str(error))
        return None if "temperature" in self.errors or "max_tokens" in self.errors else body

    def _report(self, problem: Problem) -> None:
        first = str(problem.place[0]) if problem.place else "prompt"
        if first == "params" and len(problem.place) > 1:
            first = str(problem.place[1])
        self._wrong(PLACES.get(first, first), problem.message)

    def _wrong(self, name: str, sentence: str) -> None:
        self.errors.setdefault(name, sentence)

    def _whole(self, name: str, smallest: int, largest: int) -> int:
        text = getattr(self, name)
        if re.fullmatch(r"[0-9]{1,12}", text) and smallest <= int(text) <= largest:
            return int(text)
        self._wrong(name, f"A whole number from {smallest:,} to {largest:,}.")
        return smallest

    def _number(self, name: str) -> float:
        text = getattr(self, name).replace(",", ".")
        if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{0,6})?", text):
            return float(text)
        self._wrong(name, "A number, such as 0.9.")
        return 0.0


@dataclass(frozen=True)
class Plan:
    """A checked form."""

    name: str
    rows: int
    seed: int
    recipe: Recipe


def schema_of(fields: Sequence[FieldDraft]) -> dict[str, Any]:
    """
    Raises:
        RecipeError: naming the field.
    """
    properties: dict[str, Any] = {}
    for line in fields:
        if line.name in properties:
            raise RecipeError.of(f"There are two fields named “{line.name}”.")
        properties[line.name] = line.schema()
    return {
        "type": "object",
        "required": [line.name for line in fields if line.required],
        "properties": properties,
    }


def split_values(text: str) -> list[str]:
    """Values one a line, or separated by commas where there is only one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    parts = lines if len(lines) > 1 else text.split(",")
    return list(dict.fromkeys(part.strip().rstrip(",") for part in parts if part.strip()))


def joined_values(values: Sequence[str]) -> str:
    return ("\n" if any("," in str(value) for value in values) else ", ").join(map(str, values))
