"""Extracts the message of a failed reply, as one line of plain text. Pure."""

import re
from typing import Any

# The message is near the beginning; pages of megabytes are not searched.
SEARCHED_CHARACTERS = 4000
MESSAGE_LENGTH = 300
_TITLE = re.compile(r"<(title|h1)[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_KEYS = re.compile(r"\b(sk|wb)[-_][\w.-]{3,}|(?<=Bearer )\S+", re.IGNORECASE)
_LITELLM = re.compile(r"^litellm\.\w+: (?:\w+: )?(?:\w*Exception - )?")
_LITELLM_TAIL = re.compile(r"\s*(?:Received Model Group=|LiteLLM: model group )")


def error_message(body: Any) -> str:
    """Return the message in an error body of any known server or proxy.

    Plain text on one line, without markup, keys and noise.
    """
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    if isinstance(body, str):
        return _cleaned(body)
    detail = error_detail(body)
    for value in (detail.get("message"), detail.get("detail"), detail.get("error")):
        if isinstance(value, str):
            return _cleaned(value)
    problems = detail.get("detail")  # FastAPI's list of invalid fields
    if isinstance(problems, list):
        found = [
            p["msg"] for p in problems if isinstance(p, dict) and isinstance(p.get("msg"), str)
        ]
        return _cleaned("; ".join(found))
    return ""


def error_detail(body: Any) -> dict[str, Any]:
    """Return the part of an error body that describes the error."""
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def _cleaned(text: str) -> str:
    text = text.strip()[:SEARCHED_CHARACTERS]
    if text.startswith("<"):
        title = _TITLE.search(text)
        text = re.sub(r"<[^>]*>", " ", title[2]) if title else "an HTML page"
    text = _LITELLM_TAIL.split(_LITELLM.sub("", text), maxsplit=1)[0]
    text = " ".join(_KEYS.sub("[key]", text).split())
    return text if len(text) <= MESSAGE_LENGTH else f"{text[: MESSAGE_LENGTH - 1]}…"
