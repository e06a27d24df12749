"""Errors of model servers, grouped by what the caller can do about them.

    LLMError
    ├── Unreachable          no response from this address                       transient
    │   ├── BackendGone      the proxy answers, the server behind it does not     transient
    │   ├── BadAddress       no request can be sent to such an address
    │   └── CertificateRefused  it responds, but its certificate is not trusted
    ├── Loading              the model is being loaded or started again           transient
    ├── Busy                 a proxy refuses more requests for now                transient
    ├── PoolExhausted        the shared KV cache overflowed, all requests died    transient
    ├── Stalled              no byte within the time limit                          transient
    │   └── ProxyTimeout     a proxy waited in vain for the server behind it        transient
    ├── CutOff               the stream ended before the answer did               transient
    ├── ServerFailed         any other failure of the server                      transient
    ├── QuotaExceeded        the account's budget is used up
    ├── Unauthorized         the key is wrong or missing
    ├── PromptTooLong        the prompt does not fit into a slot
    ├── InputTooLarge        a text does not fit into the embedding batch
    ├── RequestTooLarge      the request's bytes exceed what a proxy takes
    ├── NotSupported         the server was started without that feature, or never has it
    ├── UnknownModel         no such model, or no such path
    ├── NotLoaded            the model is not in memory and this server does not load it
    ├── LoadFailed           the model did not start
    └── BadRequest           a field, schema or template that the server rejects

`transient` is True if the same request may succeed later; the one retry policy reads only that.
Every message is a sentence for people and tells them what to do. `failures.classify` creates these
errors from the replies of servers and proxies, whichever shape these have.
"""

from typing import ClassVar

from apps.core.errors import DomainError


class LLMError(DomainError):
    transient: ClassVar[bool] = False
    status = 502
    code = "model_server_failed"


class Unreachable(LLMError):
    transient = True
    code = "unreachable"


class BackendGone(Unreachable):
    code = "backend_gone"


class BadAddress(Unreachable):
    transient = False
    code = "bad_address"


class CertificateRefused(Unreachable):
    transient = False
    code = "certificate_refused"


class Loading(LLMError):
    transient = True
    code = "loading"


class Busy(LLMError):
    transient = True
    code = "busy"

    def __init__(self, message: str, retry_after: float | None = None, limit: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asked us to wait; None where it named none."""
        self.limit = limit
        """The limit, in words: "llama-swap's concurrencyLimit"."""


class PoolExhausted(LLMError):
    transient = True
    code = "pool_exhausted"


class Stalled(LLMError):
    transient = True
    code = "stalled"


class ProxyTimeout(Stalled):
    code = "proxy_timeout"


CUT_OFF = (
    "The model server closed the connection before the answer was complete. Retry or continue."
)


class CutOff(LLMError):
    transient = True
    code = "cut_off"


class ServerFailed(LLMError):
    transient = True
    code = "server_failed"


class QuotaExceeded(LLMError):
    code = "quota_exceeded"


class Unauthorized(LLMError):
    code = "unauthorized"


class PromptTooLong(LLMError):
    code = "prompt_too_long"

    def __init__(self, tokens: int | None = None, context: int | None = None) -> None:
        if not (tokens and context):
            sizes = "The prompt is longer than the context per slot."
        elif tokens < context:
            sizes = f"The prompt takes {tokens:,} of the {context:,} tokens per slot, which leaves "
            sizes += "no room for an answer."
        else:
            sizes = f"The prompt has {tokens:,} tokens, but the context per slot is {context:,}."
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


class RequestTooLarge(LLMError):
    code = "request_too_large"


class NotSupported(LLMError):
    code = "not_supported"


class UnknownModel(LLMError):
    code = "unknown_model"


class NotLoaded(LLMError):
    code = "not_loaded"


class LoadFailed(LLMError):
    code = "load_failed"


class BadRequest(LLMError):
    code = "bad_request"
