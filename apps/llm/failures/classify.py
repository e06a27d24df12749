"""Classifies failed replies: by their words where these are known, else by their status."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from apps.llm.errors import (
    BackendGone,
    BadRequest,
    Busy,
    InputTooLarge,
    LLMError,
    LoadFailed,
    Loading,
    NotLoaded,
    NotSupported,
    PoolExhausted,
    PromptTooLong,
    QuotaExceeded,
    RequestTooLarge,
    ServerFailed,
    Stalled,
    Unauthorized,
    UnknownModel,
)
from apps.llm.failures.error_text import error_detail, error_message
from apps.llm.failures.retry_after import retry_wait

NO_HEADERS: Mapping[str, str] = {}
MAX_CHARACTERS = 4_000  # of a message, searched for a time to wait
_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded your current quota|"
    r"billing hard limit|requires more credits|out of credits|credit balance is too low",
    re.IGNORECASE,
)

_CONTEXT = re.compile(
    r"(?:maximum context length|maximum model length|model'?s context length|context length)"
    r"(?: of| is|:)?\s*\(?(\d[\d,]{0,11})"
    r"|(\d[\d,]{0,11})\s+(?:tokens\s+)?maximum context length",
    re.IGNORECASE,
)
_SIZE = re.compile(r"\b\d[\d,]{0,11}\b")


def classify_failure(
    status: int | None, body: Any, headers: Mapping[str, str] = NO_HEADERS
) -> LLMError:
    """Return the error that a failed reply stands for.

    Args:
        status: HTTP status, None for an error event inside a stream.
        body: the decoded JSON body, or its text.
        headers: of the reply, with names in lower case.
    """
    detail = error_detail(body)
    status = status or _code_of(detail)
    message = error_message(body)
    if status in {None, 400, 413, 422} and (overflow := _overflow(detail, message)):
        return overflow
    if detail.get("type") == "exceed_context_size_error":
        return PromptTooLong(detail.get("n_prompt_tokens"), detail.get("n_ctx"))
    # Some call requests per minute a quota, and name the seconds until there are more.
    wait = retry_wait(NO_HEADERS, str(detail.get("message", ""))[:MAX_CHARACTERS])
    if status in {402, 403, 429} and _is_over_quota(status, detail, message, wait):
        return QuotaExceeded(
            f"The quota of this server's account is used up: {message.rstrip('.')}. Add credit or "
            "raise its limit there, then go on here."
        )
    for pattern, make in _BY_WORDS:
        if found := pattern.search(message):
            return make(found, message)
    return _by_status(status, body, message or _status_text(status), headers)


def _overflow(detail: dict[str, Any], message: str) -> PromptTooLong | None:
    """Match a prompt longer than the context, in the words of OpenAI, vLLM, SGLang and others."""
    limit = _CONTEXT.search(message)
    if limit is None and detail.get("code") != "context_length_exceeded":
        return None
    context = int((limit[1] or limit[2]).replace(",", "")) if limit else None
    sizes = [int(size.replace(",", "")) for size in _SIZE.findall(message)]
    return PromptTooLong(max((n for n in sizes if context and n > context), default=None), context)


def _too_long(found: re.Match[str], message: str) -> LLMError:
    return PromptTooLong(int(found[1]), int(found[2]))


def _embeddings_only(found: re.Match[str], message: str) -> LLMError:
    return NotSupported(
        "This model computes embeddings and writes no text. Choose another model for that."
    )


def _too_large(found: re.Match[str], message: str) -> LLMError:
    return InputTooLarge(int(found[1]), int(found[2]))


def _pool_exhausted(found: re.Match[str], message: str) -> LLMError:
    return PoolExhausted(
        "The requests in flight outgrew the server's shared context and all were ended. "
        "Start the server with -np given, or with a larger -c."
    )


def _load_failed(found: re.Match[str], message: str) -> LLMError:
    reason = message.removeprefix("unspecific error: ").rstrip(".")
    return LoadFailed(f"The model failed to start: {reason}. See the server’s log.")


def _not_loaded(found: re.Match[str], message: str) -> LLMError:
    return NotLoaded(
        "The model is not loaded and the server does not load models automatically. Load "
        "it under Servers."
    )


def _unknown_model(found: re.Match[str], message: str) -> LLMError:
    return UnknownModel(f"Unknown model: {message}")


def _backend_timeout(found: re.Match[str], message: str) -> LLMError:
    return Stalled(
        "The proxy gave up waiting for the model server's first byte (Olla does after 30 seconds "
        "unless told otherwise). Raise its response_header_timeout."
    )


def _backend_gone(found: re.Match[str], message: str) -> LLMError:
    return _gone(message)


def _gone(message: str) -> LLMError:
    return BackendGone(
        f"The proxy answers, the model server behind it does not: {message.rstrip('.')}. "
        "Is it running?"
    )


def _no_deployment(found: re.Match[str], message: str) -> LLMError:
    return Busy(
        f"The proxy has no server for this model right now; it allows another try in {found[1]} "
        "seconds.",
        float(found[1]),
        "the proxy's pause after failures",
    )


def _unknown_litellm_key(found: re.Match[str], message: str) -> LLMError:
    """Match LiteLLM without a database, which answers an unknown key with status 400."""
    return _by_status(401, None, message, NO_HEADERS)


def _is_over_quota(status: int, detail: dict[str, Any], message: str, wait: float | None) -> bool:
    kinds = {str(detail.get("code")), str(detail.get("type"))}
    if status == 402 or "insufficient_quota" in kinds:
        return True
    return wait is None and bool(_QUOTA.search(message))


# Failures known by their words alone, or with an ambiguous status. The first match wins.
_BY_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], LLMError]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make)
    for pattern, make in (
        # llama-server as LiteLLM passes it on
        (r"request \((\d+) tokens\) exceeds the available context size \((\d+)", _too_long),
        (r"input \((\d+) tokens\) is too large.*?batch size: (\d+)", _too_large),
        (r"context size has been exceeded", _pool_exhausted),
        (r"does not support logits", _embeddings_only),
        # router, llama-swap
        (
            r"failed to load|health ?check timed out|exited prematurely|failed to start",
            _load_failed,
        ),
        (r"model is not (loaded|running)", _not_loaded),
        (
            r"model .*?not found|invalid model name|model .* does not exist|no model id could be|"
            r"no (router|local server|peer) (found )?for|could not find real model",
            _unknown_model,
        ),
        # Olla, the router's own proxy, LiteLLM
        (r"proxy error.*(time(d)? ?out|deadline)", _backend_timeout),
        (r"^proxy error|^connection error\b|cannot connect to host|no healthy", _backend_gone),
        (r"^no connected db", _unknown_litellm_key),
        (r"no deployments available.*?try again in (\d+) seconds", _no_deployment),
    )
)


def _by_status(status: int | None, body: Any, message: str, headers: Mapping[str, str]) -> LLMError:
    match status:
        case 401 | 403:
            return Unauthorized("The API key was rejected. Update it under Servers.")
        case 404:
            return UnknownModel(f"Unknown model or address: {message}")
        case 413 | 431:  # the byte limit of Olla and nginx: waiting does not help
            return RequestTooLarge(
                f"The request is larger than the proxy takes: {message.rstrip('.')}. Send less, "
                "or raise its limit of bytes per request."
            )
        case 429:
            text = str(error_detail(body).get("message", ""))[:MAX_CHARACTERS]
            return _busy(body, message, retry_wait(headers, text or message))
        case 501:
            return NotSupported(f"The server was started without this feature: {message}")
        case 503:
            return _unavailable(body, message)
        case 502 | 521 | 522 | 523 | 530:  # the last four are Cloudflare's words for it
            return _gone(message)
        case 504 | 524:
            return Stalled(f"A proxy timed out waiting for the model server: {message}")
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


def _unavailable(body: Any, message: str) -> LLMError:
    if _is_llama_swap(body):
        return Loading("llama-swap just stopped this model. The next request starts it again.")
    if "loading" in message.lower():
        return Loading("The server is loading the model.")
    return _gone(message)


def _is_llama_swap(body: Any) -> bool:
    return isinstance(body, dict) and body.get("src") == "llama-swap"


def _code_of(detail: dict[str, Any]) -> int | None:
    """Return the code as a number: LiteLLM sends it as text, llama-swap sends a word."""
    code = str(detail.get("code", ""))
    return int(code) if code.isdecimal() and 400 <= int(code) < 600 else None


def _status_text(status: int | None) -> str:
    return f"HTTP {status}." if status else "no reason given."
