import json
from typing import Any

from django.db import models


class OrderedJSONField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs alone
    """JSON stored as text: PostgreSQL's jsonb sorts the keys, and their order is part of prompts.

    Written in ASCII, so that any output of a model (NUL, half a surrogate pair) can be stored.
    """

    # Types for django-stubs: any JSON value.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, allow_nan=False)
