"""Parses JSON bodies for all routes, and refuses what a database cannot store.

PostgreSQL has no NUL in texts, no encoding has half a surrogate pair, JSON has no infinity, and a
number of the database has 64 bits. Where one of them comes it is refused here with its place.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja.parser import Parser
from ninja.types import DictStrAny

from apps.core.api import ApiError
from apps.core.errors import ErrorPlace
from apps.core.text.storable import is_storable, to_storable

MOST_LEVELS = 100
LARGEST = 2**63 - 1
Place = tuple[str | int, ...]

# How a NUL or half a surrogate pair is written in JSON; a whole pair is written so as well.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_DIGITS = len(str(LARGEST))


class BodyParser(Parser):
    """Ninja's parser, for bodies, queries and forms."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        return cast(DictStrAny, read(request.body))

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> DictStrAny:
        for name, values in data.lists():
            if any(not is_storable(value) for value in (name, *values)):
                raise _refused([("query", name)])
        return super().parse_querydict(data, list_fields, request)


def read(body: bytes, name: str = "body") -> Any:
    """Return the value of a JSON document.

    Args:
        name: what a message calls the document.

    Raises:
        ApiError: it is none, or cannot be kept. The message says where.
    """
    try:
        text = body.decode()
        value = json.loads(
            text, parse_int=_integer, parse_float=_float, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise ApiError(400, "bad_request", f"The {name} is not in UTF-8.") from error
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:
        detail = f"The {name} cannot be read as JSON: {str(error)[:200]}."
        raise ApiError(400, "bad_request", detail) from error
    if body.count(b"[") + body.count(b"{") > MOST_LEVELS and _levels(value) > MOST_LEVELS:
        raise _too_deep(name)
    if _SUSPECT.search(body) and (places := list(_unstorable_in(value, (name,)))):
        raise _refused(places)
    return value


def _integer(digits: str) -> int:
    if len(digits) <= _DIGITS + 1 and abs(number := int(digits)) <= LARGEST:
        return number
    raise _invalid(f"The number {digits[:30]} does not fit into 64 bits.")


def _float(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise _invalid(f"The number {digits[:30]} is too large.")
    return number


def _no_constant(name: str) -> float:
    raise _invalid(f"{name} is no number of JSON.")


def _levels(value: Any) -> int:
    """Return the nesting depth of lists and objects, counted up to the limit."""
    level, inner = 0, [value]
    while (
        inner := [one for one in inner if isinstance(one, dict | list)]
    ) and level <= MOST_LEVELS:
        level += 1
        inner = [
            child for one in inner for child in (one.values() if isinstance(one, dict) else one)
        ]
    return level


def _unstorable_in(value: Any, place: Place) -> Iterator[Place]:
    if isinstance(value, str):
        if not is_storable(value):
            yield place
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not is_storable(key):
                yield place
            yield from _unstorable_in(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _unstorable_in(inner, (*place, number))


def _too_deep(name: str) -> ApiError:
    return _invalid(f"The {name} has more than {MOST_LEVELS} lists or objects inside each other.")


def _invalid(detail: str) -> ApiError:
    return ApiError(422, "invalid", detail)


def _refused(places: Sequence[Place]) -> ApiError:
    said = "has a character that cannot be stored: NUL, or half of a surrogate pair"
    where = ", ".join(".".join(_as_detail(part) for part in place[1:]) for place in places[:3])
    errors = [ErrorPlace(loc=[*map(_as_detail, place)], msg=said) for place in places[:100]]
    detail = f"The request is not valid: {where or 'it'} {said}."
    return ApiError(422, "invalid", detail, errors=errors)


def _as_detail(part: str | int) -> str:
    return to_storable(str(part))
