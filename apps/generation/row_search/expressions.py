"""What SQL reads in the stored fields of a row, without reading the rows themselves.

Fields are JSON as text in ASCII (see `OrderedJSONField`): a key is found by its text, since within
a value the quotes are escaped.
"""

import json
from collections.abc import Sequence

from django.db import connection
from django.db.models import Case, F, Func, IntegerField, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Replace, StrIndex, Substr
from django.db.models.lookups import GreaterThan

MAX_DIGITS = 6


def shown_fields() -> Combinable:
    """The row's fields as JSON text, edits included."""
    return Coalesce(F("edited"), F("output"), output_field=TextField())


def number_of(name: str) -> Combinable:
    """The integer in a field; NULL if there is none."""
    fields, key = shown_fields(), f'"{name}": '
    if connection.vendor == "postgresql":
        pattern = Value(f"{key}([0-9]{{1,{MAX_DIGITS}}})")
        digits = Func(
            fields, pattern, function="SUBSTRING", arg_joiner=" FROM ", output_field=TextField()
        )
        return Cast(digits, IntegerField())
    place = StrIndex(fields, Value(key))
    digits = Substr(fields, place + len(key), MAX_DIGITS)
    return Case(When(GreaterThan(place, Value(0)), then=Cast(digits, IntegerField())))


def has_value(name: str, value: str) -> Combinable:
    """The place of `"name": "value"` in the fields; 0 if the field has another value."""
    return StrIndex(shown_fields(), Value(f"{json.dumps(name)}: {json.dumps(value)}"))


def searched_text(names: Sequence[str], text: str) -> Combinable:
    """The fields without those keys in which the searched text would be found."""
    fields = shown_fields()
    for name in names:
        if text.casefold() in f'"{name}": '.casefold():
            key = Value(f"{json.dumps(name)}: ")
            fields = Replace(fields, key, Value(""), output_field=TextField())
    return fields


def spellings(text: str) -> list[str]:
    """A text as it may stand in stored JSON: databases know only the case of ASCII letters."""
    variants = [text, text.lower(), text.upper(), text.capitalize()]
    return list(dict.fromkeys(json.dumps(variant)[1:-1] for variant in variants))
