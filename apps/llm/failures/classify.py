"""Classifies failed replies: by their words where these are known, else by their status."""

import re
from collections.abc import Mapping
from typing import Any

from apps.llm.errors import LLMError, PromptTooLong, QuotaExceeded
from apps.llm.failures.by_message import error_by_message
from apps.llm.failures.by_status import MAX_CHARACTERS, error_by_status
from apps.llm.failures.error_text import error_detail, error_message
from apps.llm.failures.retry_after import retry_wait

NO_HEADERS: Mapping[str, str] = {}
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
# vLLM, where the prompt leaves no room for an answer.
_NO_ROOM = re.compile(r"max_(completion_)?tokens must be at least 1, got -\d", re.IGNORECASE)
_SIZE = re.compile(r"\b\d[\d,]{0,11}\b")
_FAILED = re.compile(r"[45][0-9]{2}")  # as HTTP statuses


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
    if known := error_by_message(message):
        return known
    return error_by_status(status, body, message or _status_text(status), headers)


def _overflow(detail: dict[str, Any], message: str) -> PromptTooLong | None:
    """Match a prompt longer than the context, in the words of OpenAI, vLLM, SGLang and others."""
    limit = _CONTEXT.search(message)
    is_overflow = detail.get("code") == "context_length_exceeded" or _NO_ROOM.search(message)
    if limit is None and not is_overflow:
        return None
    context = int((limit[1] or limit[2]).replace(",", "")) if limit else None
    sizes = [int(size.replace(",", "")) for size in _SIZE.findall(message)]
    return PromptTooLong(max((n for n in sizes if context and n > context), default=None), context)


def _is_over_quota(status: int, detail: dict[str, Any], message: str, wait: float | None) -> bool:
    kinds = {str(detail.get("code")), str(detail.get("type"))}
    if status == 402 or "insufficient_quota" in kinds:
        return True
    return wait is None and bool(_QUOTA.search(message))


def _code_of(detail: dict[str, Any]) -> int | None:
    """Return the code as a number: LiteLLM sends it as text, llama-swap sends a word."""
    code = str(detail.get("code", ""))
    return int(code) if _FAILED.fullmatch(code) else None


def _status_text(status: int | None) -> str:
    return f"HTTP {status}." if status else "no reason given."
