"""The requests whose answers a server goes on with as if they had never been cut. Pure."""

from collections.abc import Mapping
from typing import Any

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
# What the next token depends on by the text before it alone. Samplers with a memory of their own
# (Mirostat), grammars of their own, tool calls and probabilities are not among them.
_PLAIN = frozenset(
    {
        *("model", "messages", "prompt", "stream", "stream_options", "stop", "ignore_eos"),
        *("max_tokens", "max_completion_tokens", "n_predict", "logit_bias", "samplers"),
        *("temperature", "top_p", "top_k", "min_p", "typical_p", "top_n_sigma", "seed"),
        *("xtc_probability", "xtc_threshold", "dynatemp_range", "dynatemp_exponent"),
        *("repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty"),
        *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
        *("dry_sequence_breakers", "cache_prompt", "id_slot", "chat_template_kwargs"),
        *("user", "metadata", "store", "service_tier"),
    }
)
# Sent by SDKs with what is the default.
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "echo": (False,),
    "tools": ([],),
    "response_format": ({"type": "text"},),
    "timings_per_token": (False,),
    "return_progress": (False,),
}

_FORMATS = ("response_format", "json_schema")


def can_continue(path: str, fields: Mapping[str, Any]) -> bool:
    """True if an answer cut anywhere goes on as it would have."""
    for name, value in fields.items():
        if value is None or name in _PLAIN or value in _NEUTRAL.get(name, ()):
            continue
        if name not in _FORMATS or path != CHAT:
            return False
    options = fields.get("stream_options")
    if options and (not isinstance(options, dict) or options.keys() - {"include_usage"}):
        return False
    if fields.get("seed") not in (None, -1) and not is_greedy(fields):
        return False  # the numbers drawn would be others
    return _ends_with_a_question(fields) if path == CHAT else _is_one_text(path, fields)


def wants_json(fields: Mapping[str, Any]) -> bool:
    """True if the answer is to be JSON: of a chat, whose template writes the grammar.

    llama.cpp leads that grammar through the beginning of an answer before it goes on; one that the
    request brings (`grammar`), and that of a schema for `/v1/completions`, start afresh there.
    """
    return any(fields.get(name) not in (None, *_NEUTRAL.get(name, ())) for name in _FORMATS)


def is_greedy(fields: Mapping[str, Any]) -> bool:
    """True if the same prompt always gets the same answer."""
    temperature = fields.get("temperature")
    is_cold = isinstance(temperature, int | float) and temperature <= 0
    return is_cold or fields.get("top_k") == 1


def _ends_with_a_question(fields: Mapping[str, Any]) -> bool:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages or "prompt" in fields:
        return False
    last = messages[-1]
    return isinstance(last, dict) and last.get("role") in {"user", "system", "developer"}


def _is_one_text(path: str, fields: Mapping[str, Any]) -> bool:
    return path == COMPLETIONS and isinstance(fields.get("prompt"), str)


def token_limit(fields: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the field that limits the answer, and its tokens; None: there is no limit.

    Raises:
        ValueError: there are several, of which the server may take any.
    """
    names = ("max_tokens", "max_completion_tokens", "n_predict")
    named = [name for name in names if fields.get(name) is not None]
    if not named:
        return None
    if len(named) > 1 or type(fields[named[0]]) is not int:
        raise ValueError("Nobody knows how many tokens are left.")
    limit: int = fields[named[0]]
    return (named[0], limit) if limit >= 0 else None


def continued(path: str, fields: Mapping[str, Any], text: str, tokens: int) -> dict[str, Any]:
    """Return the request for the rest of an answer.

    Args:
        text: what there is of the answer.
        tokens: how many that were.

    Raises:
        ValueError: there is nothing left to ask for, or nobody knows how much.
    """
    changed = {**fields, **with_beginning(path, fields, text)}
    if (limited := token_limit(fields)) is not None:
        name, limit = limited
        if limit <= tokens:
            raise ValueError("No tokens are left.")
        changed[name] = limit - tokens
    return changed


def with_beginning(path: str, fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the prompt that ends with the beginning of the answer."""
    if path == CHAT:
        return {"messages": [*fields["messages"], {"role": "assistant", "content": text}]}
    return {"prompt": fields["prompt"] + text}
