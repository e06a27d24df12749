"""What the body of a failed reply says, as one line of plain text."""

import re
from typing import Any

# A sentence stands near the beginning; a page of megabytes is not searched for it.
LOOKED_AT = 4000
MESSAGE_LENGTH = 300
_TITLE = re.compile(r"<(title|h1)[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_KEYS = re.compile(r"\b(sk|wb)[-_][\w.-]{3,}|(?<=Bearer )\S+", re.IGNORECASE)
_LITELLM = re.compile(r"^litellm\.\w+: (?:\w+: )?(?:\w*Exception - )?")
_LITELLM_TAIL = re.compile(r"\s*(?:Received Model Group=|LiteLLM: model group )")


def message_of(body: Any) -> str:
    """The sentence in an error body, whichever of the known servers and proxies wrote it.

    Plain text, of one line: markup, keys and what is merely noise are left out.
    """
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    if isinstance(body, str):
        return _cleaned(body)
    detail = detail_of(body)
    for value in (detail.get("message"), detail.get("detail"), detail.get("error")):
        if isinstance(value, str):
            return _cleaned(value)
    problems = detail.get("detail")  # FastAPI's list of what is wrong where
    if isinstance(problems, list):
        found = [
            p["msg"] for p in problems if isinstance(p, dict) and isinstance(p.get("msg"), str)
        ]
        return _cleaned("; ".join(found))
    return ""


def detail_of(body: Any) -> dict[str, Any]:
    """The part of an error body that says what is wrong."""
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def _cleaned(text: str) -> str:
    text = text.strip()[:LOOKED_AT]
    if text.startswith("<"):
        title = _TITLE.search(text)
        text = re.sub(r"<[^>]*>", " ", title[2]) if title else "an HTML page"
    text = _LITELLM_TAIL.split(_LITELLM.sub("", text), maxsplit=1)[0]
    text = " ".join(_KEYS.sub("[key]", text).split())
    return text if len(text) <= MESSAGE_LENGTH else f"{text[: MESSAGE_LENGTH - 1]}…"
