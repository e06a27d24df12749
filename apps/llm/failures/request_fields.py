"""Finds the request fields that a server refuses, in its error reply. Pure.

Servers that are not llama.cpp answer a field they do not know in three ways: most ignore it,
OpenAI and its like refuse the request with 400, gateways with a strict schema with 422. The refusal
names the field, in words of its own, so the request is sent again without it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"
# Without these it would be another request, or its answer could not be used.
NEEDED = frozenset(
    {
        *("model", "messages", "input", "stream", "tools", "tool_choice", "response_format"),
        *("logprobs", "top_logprobs"),
    }
)
# Servers know these fields with some values only, or some models: without them the answer is right,
# it merely thinks as the model does by default.
THINKING = frozenset(
    {
        *("reasoning_effort", "reasoning_budget_tokens", "reasoning_control"),
        "chat_template_kwargs",
    }
)
# Some refusals repeat the whole request: only this much is searched.
READ_CHARACTERS = 20_000

_REFUSAL = re.compile(
    r"unrecognized|unrecognised|unknown|unsupported|not supported|not support\b|extra[_ ]forbidden|"
    r"extra inputs|extra fields|not permitted|not allowed|additional propert|unexpected|"
    r"cannot find field|no such (field|parameter)|not a valid (field|parameter)|"
    r"only the default",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z][a-z0-9_]*")


def refused_fields(status: int, body: Any, sent: Mapping[str, Any]) -> frozenset[str]:
    """Return the optional fields of `sent` that a failed reply names as refused.

    Args:
        body: the decoded JSON body, or its text.
    """
    if status not in {400, 422}:
        return frozenset()
    optional = sent.keys() - NEEDED
    if named := _named(body) & optional:
        return frozenset(named)
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    text = text[:READ_CHARACTERS]
    words = set(_WORD.findall(text))
    if _REFUSAL.search(text):
        return frozenset(optional & words)
    # A reply that repeats the request names all fields of it.
    return frozenset() if "messages" in words else frozenset(optional & words & THINKING)


def without(body: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """The request without what is refused. A limit of tokens goes by its newer name instead."""
    kept = {name: value for name, value in body.items() if name not in refused}
    if MAX_TOKENS in body and MAX_TOKENS in refused and MAX_COMPLETION_TOKENS not in refused:
        kept[MAX_COMPLETION_TOKENS] = body[MAX_TOKENS]
    return kept


def _named(body: Any) -> set[str]:
    """Fields named where a body has a place for it: OpenAI's `param`, pydantic's `loc`."""
    if not isinstance(body, dict):
        return set()
    inner = body.get("error")
    detail = inner if isinstance(inner, dict) else body
    code, message = str(detail.get("code") or ""), str(detail.get("message") or "")
    found = set()
    if isinstance(detail.get("param"), str) and (
        re.match(r"un(known|supported)_", code) or _REFUSAL.search(message)
    ):
        found.add(detail["param"])
    problems = detail.get("detail")
    if isinstance(detail.get("message"), dict):  # Mistral puts pydantic's list in there
        problems = detail["message"].get("detail", problems)
    for problem in problems if isinstance(problems, list) else ():
        if isinstance(problem, dict) and "extra" in str(problem.get("type")):
            place = problem.get("loc")
            found |= {str(part) for part in place} if isinstance(place, list) else set()
    return found
