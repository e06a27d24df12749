"""Validation of a tool's arguments against its JSON schema, in bounds. Pure.

A schema may be made to take for ever by a pattern that backtracks: patterns are RE2's, and checking
counts its steps.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import re2  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

# Keywords applied to values, some microseconds each. Beyond it arguments are left to the server.
MAX_STEPS = 50_000
MAX_PROBLEMS = 3


class Unchecked(Exception):
    """The schema cannot be used to check these arguments. The message says why."""


def argument_problems(arguments: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return the first few errors in the arguments, as "place: error".

    Raises:
        Unchecked: the schema cannot be resolved, or not within the steps.
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
    return [_as_text(one) for one in found[:MAX_PROBLEMS]]


def _as_text(found: ValidationError) -> str:
    place = found.json_path.removeprefix("$").lstrip(".") or "arguments"
    return f"{place}: {found.message}"


class _TooMany(Exception):
    """More steps than allowed."""


class _Steps:
    def __init__(self) -> None:
        self.left = MAX_STEPS

    def use(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise _TooMany


Keyword = Callable[[Any, Any, Any, Any], Any]


@lru_cache(maxsize=256)
def _pattern(source: str) -> Any:
    """Compile a pattern; None for syntax that RE2 does not know, which is then not checked."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error:
        return None


def _matches(source: str, text: str) -> bool:
    compiled = _pattern(source)
    encodable = text.encode("utf-8", "replace").decode()  # RE2 takes no half of a surrogate pair
    return compiled is None or compiled.search(encodable) is not None


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
        distinct = {json.dumps(value, sort_keys=True) for value in instance}
        if len(distinct) < len(instance):
            yield ValidationError("It has the same element twice")


# Not checked: these keywords follow references on their own, where steps are not counted.
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
    """Return a validator in which every keyword takes a step, and one more for each element."""

    def counting(check: Keyword) -> Keyword:
        def run(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            wide = len(instance) if isinstance(instance, dict | list) else 0
            steps.use(1 + wide + (len(value) if isinstance(value, list | dict) else 0))
            return check(validator, value, instance, schema)

        return run

    counted = {name: counting(check) for name, check in _Checker.VALIDATORS.items()}
    return extend(_Checker, counted)(validator.schema)
