"""One column in the API's words: `name`, `kind`, and what the kind needs (pure)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from apps.generation import checks, prompts, schemas, seeds
from apps.generation.checks import Check
from apps.generation.columns import (
    JUDGE_PROMPT,
    Category,
    Column,
    Criterion,
    Date,
    Expression,
    Judge,
    Number,
    Options,
    Seed,
    Structured,
    Text,
    Uuid,
    Written,
)
from apps.generation.problems import Problem, RecipeError

MAX_VALUES = 5_000
MAX_VALUE = 2_000  # characters
MAX_NUMBER = 10**12
MAX_CANDIDATES = 10
MAX_EXAMPLES = 50
MAX_CRITERIA = 10
DATASET_FIELDS = ("text", "label")
COMMON = {"name", "kind", "condition", "keep"}

# name: (type, smallest, largest). What a server takes besides is left to a later day.
PARAMS: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0.0, 5.0),
    "min_p": (float, 0.0, 1.0),
    "top_p": (float, 0.0, 1.0),
    "top_k": (int, 0, 10_000),
    "repeat_penalty": (float, 0.0, 5.0),
    "max_tokens": (int, 1, 32_000),
}

Names = Sequence[str] | None
"""The columns before this one; None where that is not known for an earlier mistake."""
Data = Mapping[str, Any]


def read(data: Data, names: Names) -> Column:
    """
    Raises:
        RecipeError: what is wrong, with its place inside the column.
    """
    name = data.get("name")
    if not isinstance(name, str):
        raise RecipeError.of("A column has a name, a kind and what the kind needs.")
    prompts.check_name(name)
    kind = data.get("kind", "category")
    if kind not in KINDS:
        message = f"There is no kind “{kind}” of column: use one of {', '.join(KINDS)}."
        raise RecipeError([Problem(("kind",), message)])
    reader, parts = KINDS[kind]
    for unknown in data.keys() - COMMON - parts:
        raise RecipeError([Problem((str(unknown),), f"A column of kind {kind} has no such part.")])
    condition = _text(data, "condition").strip()
    if condition:
        _at("condition", prompts.check_expression, condition, names)
    keep = data.get("keep", True)
    if not isinstance(keep, bool):
        raise RecipeError([Problem(("keep",), "Must be true or false.")])
    source = {key: value for key, value in data.items() if value not in ("", None)}
    common = {"name": name, "source": source, "condition": condition, "keep": keep}
    return reader(data, names, common)


def _at(place: str, check: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return check(*arguments)
    except RecipeError as error:
        raise RecipeError([problem.at(place) for problem in error.problems]) from error


def _text(data: Data, name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise RecipeError([Problem((name,), "Must be a text.")])
    return value


def _number(data: Data, name: str, default: float | None = None) -> float:
    value = data.get(name, default)
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not -MAX_NUMBER <= value <= MAX_NUMBER
    ):
        raise RecipeError([Problem((name,), "Must be a number.")])
    return value


def _whole(data: Data, name: str, default: int, smallest: int, largest: int) -> int:
    value = data.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= largest:
        message = f"Must be a whole number from {smallest:,} to {largest:,}."
        raise RecipeError([Problem((name,), message)])
    return value


def _earlier(data: Data, name: str, names: Names) -> str:
    """The name of an earlier column, or nothing."""
    value = _text(data, name)
    if value and names is not None and value not in names:
        there = ", ".join(names) or "none"
        message = f"There is no column “{value}” before this one. There are: {there}."
        raise RecipeError([Problem((name,), message)])
    return value


# --- Drawn --------------------------------------------------------------------


def _category(data: Data, names: Names, common: Data) -> Column:
    name = common["name"]
    depends_on = _earlier(data, "depends_on", names)
    values = data.get("values")
    if not depends_on:
        if isinstance(values, Mapping):
            message = f"“{name}” has values by another column's: say with depends_on which one."
            raise RecipeError.of(message)
        return Category(**common, options=_options(name, values, data.get("weights")))
    if not isinstance(values, Mapping) or not values:
        raise RecipeError.of(
            f"“{name}” depends on “{depends_on}”: its values are an object, "
            f"value of “{depends_on}” to a list."
        )
    branches = {
        str(value).strip(): _options(f"{name} ({value})", found, None)
        for value, found in values.items()
    }
    return Category(**common, depends_on=depends_on, branches=branches)


def _persona(data: Data, names: Names, common: Data) -> Column:
    _text(data, "about")
    options = _options(common["name"], data.get("values"), None)
    return Category(**common, options=options, persona=True)


def _options(name: str, values: Any, weights: Any) -> Options:
    if not isinstance(values, list) or not values:
        raise RecipeError.of(f"“{name}” needs at least one value.")
    if len(values) > MAX_VALUES:
        raise RecipeError.of(f"“{name}” has {len(values):,} values; at most {MAX_VALUES:,}.")
    if weights is None and any(isinstance(value, Mapping) for value in values):
        weights = [v.get("weight", 1) if isinstance(v, Mapping) else 1 for v in values]
        values = [v.get("value") if isinstance(v, Mapping) else v for v in values]
    texts = [_value(name, value) for value in values]
    if weights is None:
        return Options(tuple(dict.fromkeys(texts)))
    if not isinstance(weights, list) or len(weights) != len(texts):
        raise RecipeError.of(f"“{name}” needs as many weights as values.")
    if len(set(texts)) < len(texts):
        raise RecipeError.of(f"“{name}” has a value twice: give it the sum of both weights.")
    for weight in weights:
        if (
            not isinstance(weight, int | float)
            or isinstance(weight, bool)
            or not 0 <= weight <= MAX_NUMBER
        ):
            raise RecipeError.of(f"A weight of “{name}” is no number from 0 on.")
    if not sum(weights):
        raise RecipeError.of(f"All weights of “{name}” are 0.")
    return Options(tuple(texts), tuple(float(weight) for weight in weights))


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecipeError.of(f"A value of “{name}” is empty or no text.")
    text = str(value).strip()
    if not text:
        raise RecipeError.of(f"A value of “{name}” is empty or no text.")
    if len(text) > MAX_VALUE:
        raise RecipeError.of(f"A value of “{name}” is longer than {MAX_VALUE:,} characters.")
    return text


def _number_column(data: Data, names: Names, common: Data) -> Column:
    smallest, largest = _number(data, "min"), _number(data, "max")
    decimals = _whole(data, "decimals", 0, 0, 9)
    if smallest > largest:
        raise RecipeError([Problem(("min",), "The smallest is larger than the largest.")])
    if not decimals and (int(smallest) != smallest or int(largest) != largest):
        message = "With no decimals the limits are whole numbers."
        raise RecipeError([Problem(("decimals",), message)])
    normal = "mean" in data or "deviation" in data
    mean = _number(data, "mean", (smallest + largest) / 2)
    deviation = _number(data, "deviation", max((largest - smallest) / 6, 1e-9))
    if normal and deviation <= 0:
        raise RecipeError([Problem(("deviation",), "Must be larger than 0.")])
    return Number(
        **common,
        smallest=smallest,
        largest=largest,
        decimals=decimals,
        normal=normal,
        mean=mean,
        deviation=deviation,
    )


def _date_column(data: Data, names: Names, common: Data) -> Column:
    first, last = _moment(data, "from"), _moment(data, "to")
    if first > last:
        raise RecipeError([Problem(("from",), "The first day is after the last.")])
    with_time = data.get("time", False)
    if not isinstance(with_time, bool):
        raise RecipeError([Problem(("time",), "Must be true or false.")])
    return Date(**common, first=first, last=last, with_time=with_time)


def _moment(data: Data, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_text(data, name)).replace(tzinfo=UTC)
    except ValueError as error:
        message = "Must be a date such as 2026-01-31."
        raise RecipeError([Problem((name,), message)]) from error


def _uuid_column(data: Data, names: Names, common: Data) -> Column:
    return Uuid(**common)


def _seed_column(data: Data, names: Names, common: Data) -> Column:
    order = data.get("order", "sample")
    if order not in {"sample", "walk"}:
        raise RecipeError([Problem(("order",), "Must be sample (by chance) or walk (in order).")])
    fields = _seed_fields(data)
    match = _earlier(data, "match", names)
    template = _text(data, "template").strip()
    if template:
        _at("template", prompts.check, template, fields)
    return Seed(
        **common,
        row_fields=fields,
        count=_whole(data, "count", 1, 1, MAX_EXAMPLES),
        walk=order == "walk",
        match=match,
        match_field=_text(data, "match_field") or "label",
        template=template,
    )


def _seed_fields(data: Data) -> tuple[str, ...]:
    """What a row of the source has: told by the source itself, or by whoever stored its rows."""
    told = data.get("fields")
    if told is not None:
        if not isinstance(told, list) or not told:
            raise RecipeError([Problem(("fields",), "Must be a list of names.")])
        for name in told:
            _at("fields", prompts.check_name, str(name))
        return tuple(map(str, told))
    if data.get("dataset") is not None:
        _whole(data, "dataset", 0, 1, 2**62)
        return DATASET_FIELDS
    if "rows" in data or "text" in data:
        return seeds.field_names(seeds.read(data))
    raise RecipeError.of("Choose where the seed rows come from: a dataset, rows, or a text.")


def _expression(data: Data, names: Names, common: Data) -> Column:
    expression = _text(data, "expression").strip()
    _at("expression", prompts.check_expression, expression, names)
    return Expression(**common, expression=expression)


# --- Written ------------------------------------------------------------------


def _text_column(data: Data, names: Names, common: Data) -> Column:
    return Text(**common, **_written(data, names))


def _structured(data: Data, names: Names, common: Data) -> Column:
    if not data.get("schema"):
        raise RecipeError([Problem(("schema",), "Add at least one field.")])
    schema = _at("schema", schemas.checked, data["schema"])
    for name in schemas.field_names(schema):
        _at("schema", prompts.check_name, name)
    return Structured(**common, **_written(data, names), row_schema=schema)


def _judge(data: Data, names: Names, common: Data) -> Column:
    given = data.get("criteria")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_CRITERIA:
        message = f"A judge has from 1 to {MAX_CRITERIA} criteria."
        raise RecipeError([Problem(("criteria",), message)])
    criteria = tuple(_criterion(at, value) for at, value in enumerate(given))
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise RecipeError([Problem(("criteria",), "Two criteria have the same name.")])
    told = {**data, "prompt": data.get("prompt") or JUDGE_PROMPT}
    told["params"] = {"temperature": 0.0, "max_tokens": 200, **(data.get("params") or {})}
    return Judge(**common, **_written(told, names), criteria=criteria)


def _criterion(at: int, data: Any) -> Criterion:
    place = ("criteria", at)
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise RecipeError([Problem(place, "A criterion has a name and a description.")])
    try:
        prompts.check_name(data["name"])
        for unknown in data.keys() - {"name", "description", "max", "at_least"}:
            raise RecipeError.of(f"A criterion has no part “{unknown}”.")
        largest = _whole(data, "max", 5, 2, 100)
        return Criterion(
            data["name"],
            _text(data, "description").strip(),
            largest,
            _whole(data, "at_least", 0, 0, largest),
        )
    except RecipeError as error:
        raise RecipeError([problem.at(*place) for problem in error.problems]) from error


def _written(data: Data, names: Names) -> dict[str, Any]:
    return {
        "prompt": _at("prompt", prompt, data.get("prompt"), names),
        "params": _at("params", params, data.get("params")),
        "checks": _at("checks", checks_of, data),
        "candidates": _at("candidates", candidates_of, data),
    }


def prompt(source: Any, names: Names) -> str:
    if not isinstance(source, str) or not source.strip():
        raise RecipeError.of("Write the prompt: what shall the model write for each row?")
    prompts.check(source, names)
    return source


def params(data: Any) -> dict[str, float]:
    """The parameters that were given, each within its limits."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise RecipeError.of("Parameters are an object, such as temperature and max_tokens.")
    problems: list[Problem] = []
    found: dict[str, float] = {}
    for name, value in data.items():
        if name not in PARAMS:
            known = ", ".join(PARAMS)
            problems.append(Problem((str(name),), f"There is no such parameter. Use {known}."))
            continue
        kind, smallest, largest = PARAMS[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or (kind is int and not whole) or not smallest <= value <= largest:
            noun = "a whole number" if kind is int else "a number"
            problems.append(
                Problem((str(name),), f"Must be {noun} from {smallest:g} to {largest:g}.")
            )
        else:
            found[name] = value
    if problems:
        raise RecipeError(problems)
    return found


def checks_of(data: Data) -> tuple[Check, ...]:
    given = data.get("checks") or []
    if not isinstance(given, list) or len(given) > checks.MAX_CHECKS:
        raise RecipeError.of(f"Checks are a list of at most {checks.MAX_CHECKS}.")
    found = []
    for at, check in enumerate(given):
        try:
            found.append(checks.read(check))
        except RecipeError as error:
            raise RecipeError([problem.at(at) for problem in error.problems]) from error
    return tuple(found)


def candidates_of(data: Data) -> int:
    value = data.get("candidates", 1)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_CANDIDATES:
        raise RecipeError.of(f"Must be a whole number from 1 to {MAX_CANDIDATES}.")
    return value


def check_fields(column: Written, names: Names) -> None:
    """That the checks name fields and columns that are there."""
    for check in column.checks:
        if check.field and check.field not in column.names:
            message = f"A check names the field “{check.field}”, which is not there."
            raise RecipeError([Problem(("checks",), message)])
        if check.kind == "expression":
            prompts.check_expression(check.text, names)
        elif check.kind in {"contains", "lacks"} and "{{" in check.text:
            prompts.check(check.text, names)


Reader = Callable[[Data, Names, Any], Column]
_WRITTEN_PARTS = {"prompt", "params", "checks", "candidates"}

KINDS: dict[str, tuple[Reader, set[str]]] = {
    "category": (_category, {"values", "weights", "depends_on"}),
    "persona": (_persona, {"values", "about"}),
    "number": (_number_column, {"min", "max", "decimals", "mean", "deviation"}),
    "date": (_date_column, {"from", "to", "time"}),
    "uuid": (_uuid_column, set()),
    "seed": (
        _seed_column,
        {
            *("dataset", "rows", "text", "format", "fields", "stored", "order", "count"),
            *("match", "match_field", "template"),
        },
    ),
    "expression": (_expression, {"expression"}),
    "text": (_text_column, _WRITTEN_PARTS),
    "structured": (_structured, _WRITTEN_PARTS | {"schema"}),
    "judge": (_judge, (_WRITTEN_PARTS - {"checks", "candidates"}) | {"criteria"}),
}
