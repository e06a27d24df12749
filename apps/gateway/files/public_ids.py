"""Names of objects in OpenAI's API: a prefix and the digits of a UUID. Pure."""

import uuid


def read_public_id(text: str, prefix: str) -> uuid.UUID | None:
    """Return the key in a name like "file-0b0f…"; None where it is no such name."""
    digits = text.removeprefix(prefix)
    if digits == text or len(digits) != 32:
        return None
    try:
        return uuid.UUID(hex=digits)
    except ValueError:
        return None
