"""Classifies failed replies by their words, as servers and proxies are known to write them."""

import re
from collections.abc import Callable

from apps.llm.errors import (
    CUT_OFF,
    Busy,
    CutOff,
    InputTooLarge,
    LLMError,
    LoadFailed,
    NotLoaded,
    NotSupported,
    PoolExhausted,
    PromptTooLong,
    ProxyTimeout,
    Unauthorized,
    UnknownModel,
)
from apps.llm.failures.by_status import KEY_REJECTED, backend_gone

# Of llama-swap before 2025: it may hold paths and keys, which are nobody's business here.
_COMMAND = re.compile(r"command \[[^\]]*\]?")


def error_by_message(message: str) -> LLMError | None:
    """Return the error that a message is known to stand for; None for unknown words."""
    for pattern, make in _BY_WORDS:
        if found := pattern.search(message):
            return make(found, message)
    return None


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
    reason = _COMMAND.sub("its command ended with", reason)
    return LoadFailed(f"The model failed to start: {reason}. See the server’s log.")


def _not_loaded(found: re.Match[str], message: str) -> LLMError:
    return NotLoaded(
        "The model is not loaded and the server does not load models automatically. Load "
        "it under Servers."
    )


def _unknown_model(found: re.Match[str], message: str) -> LLMError:
    return UnknownModel(f"Unknown model: {message}")


def _backend_timeout(found: re.Match[str], message: str) -> LLMError:
    return ProxyTimeout(
        "The proxy gave up waiting for the model server's first byte (Olla does after 30 seconds "
        "unless told otherwise). Raise its response_header_timeout."
    )


def _backend_gone(found: re.Match[str], message: str) -> LLMError:
    return backend_gone(message)


def _cut_off(found: re.Match[str], message: str) -> LLMError:
    """Match LiteLLM, where the server behind it ended in the middle of an answer."""
    return CutOff(CUT_OFF)


def _no_deployment(found: re.Match[str], message: str) -> LLMError:
    return Busy(
        f"The proxy has no server for this model right now; it allows another try in {found[1]} "
        "seconds.",
        float(found[1]),
        "the proxy's pause after failures",
    )


def _unknown_litellm_key(found: re.Match[str], message: str) -> LLMError:
    """Match LiteLLM without a database, which answers an unknown key with status 400."""
    return Unauthorized(KEY_REJECTED)


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
            r"failed to load|health ?check timed out|exited prematurely|failed to start|"
            r"unable to start process",
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
        (
            r"peer closed connection|incomplete chunked read|payload is not completed|"
            r"not enough data (for|to) satisfy|transfer-?encoding",
            _cut_off,
        ),
        (r"^no connected db", _unknown_litellm_key),
        (r"no deployments available.*?try again in (\d+) seconds", _no_deployment),
    )
)
