"""What can go wrong at a model server, by what the caller can do about it.

    LLMError
    ├── Unreachable      nobody answers at this address                       transient
    ├── Loading          the model is being loaded                            transient
    ├── Busy             a proxy refuses more requests for now                transient
    ├── PoolExhausted    the shared KV cache overflowed, all requests died    transient
    ├── Stalled          no byte within the budget                            transient
    ├── CutOff           the stream ended before the answer did               transient
    ├── ServerFailed     any other failure of the server                      transient
    ├── Unauthorized     the key is wrong or missing
    ├── PromptTooLong    the prompt does not fit into a slot
    ├── InputTooLarge    a text does not fit into the embedding batch
    ├── NotSupported     the server was started without that feature
    ├── UnknownModel     no such model, or no such path
    └── BadRequest       a field, schema or template the server does not take

`transient` says whether the same request may succeed later. The one retry policy reads only that.
Every message is a sentence for a person, and says what to do.
"""

import re
from typing import Any, ClassVar


class LLMError(Exception):
    transient: ClassVar[bool] = False
    code: ClassVar[str] = "model_server_failed"


class Unreachable(LLMError):
    transient = True
    code = "unreachable"


class Loading(LLMError):
    transient = True
    code = "loading"


class Busy(LLMError):
    transient = True
    code = "busy"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the server asked us to wait, where it said."""


class PoolExhausted(LLMError):
    transient = True
    code = "pool_exhausted"


class Stalled(LLMError):
    transient = True
    code = "stalled"


class CutOff(LLMError):
    transient = True
    code = "cut_off"


class ServerFailed(LLMError):
    transient = True
    code = "server_failed"


class Unauthorized(LLMError):
    code = "unauthorized"


class PromptTooLong(LLMError):
    code = "prompt_too_long"

    def __init__(self, tokens: int | None = None, context: int | None = None) -> None:
        sizes = (
            f"The prompt is {tokens:,} tokens long, this server's slots hold {context:,}."
            if tokens and context
            else "The prompt is longer than this server's slots."
        )
        super().__init__(f"{sizes} Shorten it, or start the server with a larger -c.")
        self.tokens = tokens
        self.context = context


class InputTooLarge(LLMError):
    code = "input_too_large"

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(
            f"A text is {tokens:,} tokens long, the embedding server takes {limit:,}. "
            "Shorten it, or start the server with a larger -ub."
        )
        self.tokens = tokens
        self.limit = limit


class NotSupported(LLMError):
    code = "not_supported"


class UnknownModel(LLMError):
    code = "unknown_model"


class BadRequest(LLMError):
    code = "bad_request"


_CONTEXT_TEXT = re.compile(r"request \((\d+) tokens\) exceeds the available context size \((\d+)")
_TOO_LARGE = re.compile(r"input \((\d+) tokens\) is too large.*?batch size: (\d+)", re.DOTALL)


def from_reply(status: int | None, body: Any, retry_after: str | None = None) -> LLMError:
    """The error behind a reply that is none. Shapes differ by server; see `message_of`.

    Args:
        status: HTTP status, None for an error event inside a stream.
        body: the decoded JSON body, or its text.
    """
    message = message_of(body) or f"HTTP {status}"
    detail = _inner(body)
    if detail.get("type") == "exceed_context_size_error":
        return PromptTooLong(detail.get("n_prompt_tokens"), detail.get("n_ctx"))
    if found := _CONTEXT_TEXT.search(message):
        return PromptTooLong(int(found[1]), int(found[2]))
    if found := _TOO_LARGE.search(message):
        return InputTooLarge(int(found[1]), int(found[2]))
    if "Context size has been exceeded" in message:
        return PoolExhausted(
            "The requests in flight outgrew the server's shared context and all were ended. "
            "Start the server with -np given, or with a larger -c."
        )
    match status:
        case 401 | 403:
            return Unauthorized("The server refuses the key. Enter the right one under Servers.")
        case 404:
            return UnknownModel(f"The server does not know this model or address: {message}")
        case 413 | 429:
            return Busy(
                f"The server takes no more requests for now: {message}", _seconds(retry_after)
            )
        case 501:
            return NotSupported(f"The server was started without this: {message}")
        case 503 if "loading" in message.lower():
            return Loading("The server is loading the model.")
        case int() if 400 <= status < 500:
            return BadRequest(f"The server does not take this request: {message}")
        case _:
            return ServerFailed(f"The model server failed: {message}")


def message_of(body: Any) -> str:
    """The sentence in an error body, whichever of the known servers and proxies wrote it."""
    if isinstance(body, str):
        return body.strip()[:500]
    detail = _inner(body)
    for value in (detail.get("message"), detail.get("detail"), detail.get("error")):
        if isinstance(value, str):
            return value.strip()[:500]
    return ""


def _inner(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.replace(".", "", 1).isdecimal() else None
