"""Classifies failed replies by their HTTP status, where their words are not known."""

import re
from collections.abc import Mapping
from typing import Any

from apps.llm.errors import (
    BackendGone,
    BadRequest,
    Busy,
    LLMError,
    Loading,
    NotSupported,
    ProxyTimeout,
    RequestTooLarge,
    ServerFailed,
    Unauthorized,
    UnknownModel,
)
from apps.llm.failures.error_text import error_detail
from apps.llm.failures.retry_after import retry_wait

# It answers and takes no more for now; any other 503 means that it is away.
_OVERLOADED = re.compile(r"overloaded|slow down|slots[_ ]exhausted|too many|capacity", re.I)
MAX_CHARACTERS = 4_000  # of a message, searched for a time to wait
KEY_REJECTED = "The API key was rejected. Update it under Servers."


def error_by_status(
    status: int | None, body: Any, message: str, headers: Mapping[str, str]
) -> LLMError:
    """Return the error that a status without known words stands for."""
    match status:
        case 401 | 403:
            return Unauthorized(KEY_REJECTED)
        case 404:
            return UnknownModel(f"Unknown model or address: {message}")
        case 413 | 431:  # the byte limit of Olla and nginx: waiting does not help
            return RequestTooLarge(
                f"The request is larger than the proxy takes: {message.rstrip('.')}. Send less, "
                "or raise its limit of bytes per request."
            )
        case 429 | 498 | 529:  # the last two: Groq's capacity, Anthropic's overload
            text = str(error_detail(body).get("message", ""))[:MAX_CHARACTERS]
            return _busy(body, message, retry_wait(headers, text or message))
        case 501:
            return NotSupported(f"The server was started without this feature: {message}")
        case 503:
            return _unavailable(body, message, headers)
        case 502 | 520 | 521 | 522 | 523 | 525 | 526 | 530:  # from 520 on Cloudflare's
            return backend_gone(message)
        case 504 | 524:
            return ProxyTimeout(f"A proxy timed out waiting for the model server: {message}")
        case int() if 400 <= status < 500:
            return BadRequest(f"The server rejected the request: {message}")
        case _:
            return ServerFailed(f"Model server error: {message}")


def _busy(body: Any, message: str, retry_after: float | None) -> LLMError:
    if _is_llama_swap(body):
        return Busy(
            "llama-swap takes no more requests for this model at a time, the waiting ones included "
            "(10, unless its concurrencyLimit says otherwise).",
            retry_after,
            "llama-swap's concurrencyLimit",
        )
    limit = "the proxy's rate limit" if isinstance(body, str) else "the server's limit"
    return Busy(f"The server’s request limit is reached: {message}", retry_after, limit)


def _unavailable(body: Any, message: str, headers: Mapping[str, str]) -> LLMError:
    if _is_llama_swap(body):
        return Loading("llama-swap just stopped this model. The next request starts it again.")
    if "loading" in message.lower():
        return Loading("The server is loading the model.")
    if _OVERLOADED.search(message) or _OVERLOADED.search(str(error_detail(body).get("code"))):
        return _busy(body, message, retry_wait(headers, message))
    return backend_gone(message)


def _is_llama_swap(body: Any) -> bool:
    return isinstance(body, dict) and body.get("src") == "llama-swap"


def backend_gone(message: str) -> BackendGone:
    return BackendGone(
        f"The proxy answers, the model server behind it does not: {message.rstrip('.')}. "
        "Is it running?"
    )
