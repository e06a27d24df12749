"""A label as a chat completion, for programs that know nothing else. Pure."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from apps.core.label_models.label_model import LabelScores
from apps.gateway.errors import GatewayError

# As OpenAI has it.
MAX_TOP_LOGPROBS = 20
# What stands for a probability of 0, as OpenAI has it.
LOWEST_LOGPROB = -9999.0


def check_options(fields: Mapping[str, Any]) -> None:
    """Refuse what a label cannot be.

    Raises:
        GatewayError
    """
    if fields.get("n") not in (None, 1):
        raise GatewayError(400, "bad_number", "A classifier gives one answer. Leave out `n`.")
    form = fields.get("response_format")
    if isinstance(form, dict) and form.get("type") not in (None, "text"):
        detail = "A classifier answers with its label as text. Leave out `response_format`, or "
        raise GatewayError(400, "bad_format", detail + "ask /v1/systemone.")
    top = fields.get("top_logprobs")
    if top is not None and (type(top) is not int or not 0 <= top <= MAX_TOP_LOGPROBS):
        detail = f"`top_logprobs` is a whole number from 0 to {MAX_TOP_LOGPROBS}."
        raise GatewayError(400, "bad_number", detail)


def completion(begin: Mapping[str, Any], fields: Mapping[str, Any], scores: LabelScores) -> bytes:
    """Return the answer in one piece. Its usage is not reported.

    Args:
        begin: id, time and model, the same in all pieces.
    """
    message = {"role": "assistant", "content": scores.label, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    choice |= {"logprobs": _logprobs(fields, scores), **scores.remarks}
    body = {**begin, "object": "chat.completion", "choices": [choice], "usage": None}
    return json.dumps(body, ensure_ascii=False).encode()


def chunks(
    begin: Mapping[str, Any], fields: Mapping[str, Any], scores: LabelScores
) -> Iterator[bytes]:
    """Yield the answer as events: the label is one piece."""
    first = {"role": "assistant", "content": scores.label}
    logprobs = _logprobs(fields, scores)
    yield _event(begin, {"delta": first, "logprobs": logprobs, "finish_reason": None})
    yield _event(begin, {"delta": {}, "finish_reason": "stop", **scores.remarks})
    yield b"data: [DONE]\n\n"


def _event(begin: Mapping[str, Any], choice: Mapping[str, Any]) -> bytes:
    body = {**begin, "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def _logprobs(fields: Mapping[str, Any], scores: LabelScores) -> dict[str, Any] | None:
    """Return the logarithms of the labels' probabilities: a label counts as one token."""
    if fields.get("logprobs") is not True:
        return None
    top = [_logprob(*one) for one in scores.ranked[: fields.get("top_logprobs") or 0]]
    return {"content": [{**_logprob(*scores.ranked[0]), "top_logprobs": top}], "refusal": None}


def _logprob(label: str, probability: float) -> dict[str, Any]:
    value = math.log(probability) if probability > 0 else LOWEST_LOGPROB
    return {"token": label, "logprob": value, "bytes": list(label.encode())}
