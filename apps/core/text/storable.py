"""Characters that no database stores: NUL (PostgreSQL) and half of a surrogate pair (all)."""

import re
from typing import Any

_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


def is_storable(value: Any) -> bool:
    """Return True if a database can store every text in a JSON value."""
    if isinstance(value, dict):
        return all(map(is_storable, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(is_storable, value))
    return not isinstance(value, str) or _NOT_STORABLE.search(value) is None


def to_storable(text: str) -> str:
    """Return the text with such characters replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
