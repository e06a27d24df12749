"""JSON schemas of tools' arguments, as other programs write them, checked in bounds. Pure.

A schema may be made to take for ever: a pattern that backtracks, references that double with each
level. So a schema is looked at when it is taken, patterns are RE2's, and checking counts its steps.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import re2  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

MAX_BYTES = 20_000
MAX_DEPTH = 40
# With every reference replaced by what it refers to. The largest that are in use have some hundred.
MAX_PARTS = 5_000
# Keywords applied to values, some microseconds each. Beyond it arguments are left to the server.
MAX_STEPS = 50_000
PROBLEMS = 3
REFERENCES = ("$ref", "$dynamicRef")


class Unchecked(Exception):
    """The schema cannot be used to check these arguments. The message says why."""


def problem(schema: Any) -> str:
    """Return the reason why no model can use a tool with this schema; "" where it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its arguments are not an object."
    if _depth_beyond(schema, MAX_DEPTH):
        return f"the schema of its arguments is nested deeper than {MAX_DEPTH} levels."
    if len(json.dumps(schema)) > MAX_BYTES:
        return f"the schema of its arguments is larger than {MAX_BYTES:,} bytes."
    if any(not reference.startswith("#") for reference in _references(schema)):
        return "the schema of its arguments refers to another document."
    if _parts(schema) > MAX_PARTS:
        return f"the schema of its arguments expands to more than {MAX_PARTS:,} parts."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"the schema of its arguments is wrong: {error.message[:200]}."
    except RecursionError:
        return "the schema of its arguments refers to itself."
    return ""


def problems(arguments: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return the first few errors in the arguments, as "place: error".

    Raises:
        Unchecked: the schema says what cannot be read, or not within the steps.
    """
    validator = _Checker(schema)
    steps = _Steps()
    try:
        found = list(islice(_counted(validator, steps).iter_errors(arguments), 100))
    except _TooMany as error:
        raise Unchecked(f"it takes more than {MAX_STEPS:,} steps") from error
    except (Unresolvable, RecursionError) as error:
        raise Unchecked("it refers to what is not there, or to itself") from error
    found.sort(key=lambda one: one.json_path)
    return [_said(one) for one in found[:PROBLEMS]]


def _said(found: ValidationError) -> str:
    place = found.json_path.removeprefix("$").lstrip(".") or "arguments"
    return f"{place}: {found.message}"


# --- What a schema comes to -------------------------------------------------------


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _depth_beyond(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [inner for one in level for inner in _inner(one) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[key] for key in REFERENCES if isinstance(value.get(key), str)]
    else:
        own = []
    return own + [found for inner in _inner(value) for found in _references(inner)]


def _parts(schema: dict[str, Any]) -> int:
    """Objects and lists in a schema whose references are replaced, once where they go round."""
    sizes: dict[int, int] = {}

    def size(value: Any, within: frozenset[int]) -> int:
        if not isinstance(value, dict | list):
            return 0
        if id(value) in within:
            return 1
        if id(value) not in sizes:
            here = within | {id(value)}
            own = 1 + sum(size(inner, here) for inner in _inner(value))
            if isinstance(value, dict):
                for key in REFERENCES:
                    own += size(_referred(schema, value.get(key)), here)
            sizes[id(value)] = own
        return sizes[id(value)]

    try:
        return size(schema, frozenset())
    except RecursionError:  # a chain of references as long as the schema
        return MAX_PARTS + 1


def _referred(schema: Any, reference: Any) -> Any:
    """Return the target of a JSON pointer within the schema; None for anything else."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = schema
    for step in filter(None, reference[1:].split("/")):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and len(key) < 6:
            found = found[int(key)] if int(key) < len(found) else None
        else:
            return None
    return found


# --- Checking, in steps -----------------------------------------------------------


class _TooMany(Exception):
    pass


class _Steps:
    def __init__(self) -> None:
        self.left = MAX_STEPS

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise _TooMany


Keyword = Callable[[Any, Any, Any, Any], Any]


@lru_cache(maxsize=256)
def _pattern(source: str) -> Any:
    """None for what RE2 does not know: then it is not checked."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error:
        return None


def _matches(source: str, text: str) -> bool:
    compiled = _pattern(source)
    told = text.encode("utf-8", "replace").decode()  # RE2 takes no half of a surrogate pair
    return compiled is None or compiled.search(told) is not None


def _check_pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Any:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Any:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if _pattern(pattern) is not None and _matches(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _check_additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Any:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [
        name
        for name in instance
        if name not in known and not any(_matches(pattern, name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extra:
        named = ", ".join(repr(name) for name in extra[:5])
        verb = "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({named} {verb} unexpected)")


def _check_unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
    if wanted and isinstance(instance, list):
        told = {json.dumps(value, sort_keys=True) for value in instance}
        if len(told) < len(instance):
            yield ValidationError("It has the same element twice")


# Not checked: what looks for what was evaluated goes through references by itself, uncounted.
_LEFT_OUT: dict[str, Keyword] = {
    name: lambda *_: None for name in ("unevaluatedItems", "unevaluatedProperties")
}
_Checker = extend(
    Draft202012Validator,
    {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional,
        "uniqueItems": _check_unique,
        **_LEFT_OUT,
    },
)


def _counted(validator: Any, steps: _Steps) -> Any:
    """The validator, each keyword of which takes a step, and more where it looks at many."""

    def counting(check: Keyword) -> Keyword:
        def run(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            wide = len(instance) if isinstance(instance, dict | list) else 0
            steps.take(1 + wide + (len(value) if isinstance(value, list | dict) else 0))
            return check(validator, value, instance, schema)

        return run

    counted = {name: counting(check) for name, check in _Checker.VALIDATORS.items()}
    return extend(_Checker, counted)(validator.schema)
