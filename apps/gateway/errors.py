"""What the gateway itself refuses, in the shape of the API that was called."""

import json
import math
from collections.abc import Iterable

from apps.core.errors import DomainError
from apps.core.http.anthropic_errors import anthropic_error
from apps.core.http.openai_errors import openai_error
from apps.gateway.routes import Dialect
from apps.llm import errors

# The status of an error that the workbench found, where it is not 502.
STATUS: dict[type[errors.LLMError], int] = {
    errors.Busy: 429,
    errors.Loading: 503,
    errors.Unreachable: 503,
    errors.UnknownModel: 404,
    errors.Stalled: 504,
    errors.PoolExhausted: 503,
    errors.PromptTooLong: 400,
    errors.InputTooLarge: 400,
    errors.BadRequest: 400,
}
RETRY_SECONDS = 5
NAMED = 8  # models in an error message


class GatewayError(DomainError):
    """A request that the gateway does not send on. The message says what to do."""

    def __init__(
        self, status: int, code: str, detail: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.retry_after = status, code, retry_after


def from_model_server(error: errors.LLMError) -> GatewayError:
    """Return what a program is told of a failed model server."""
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 502)
    wait = getattr(error, "retry_after", None)
    if wait is None and error.transient and status in {429, 503}:
        wait = RETRY_SECONDS
    return GatewayError(status, error.code, str(error), retry_after=wait)


def unknown_model(name: str, models: Iterable[str]) -> GatewayError:
    """Return the error that nobody has a model, with those that there are."""
    known = sorted(models)
    listed = ", ".join(known[:NAMED]) + (", …" if len(known) > NAMED else "")
    have = f"There are {listed}." if known else "No model server reports a model now."
    return GatewayError(404, "model_not_found", f"No model server has “{name[:100]}”. {have}")


def error_body(error: GatewayError, dialect: Dialect) -> bytes:
    """Return the JSON of an error."""
    if dialect is Dialect.ANTHROPIC:
        body = anthropic_error(error.status, str(error))
    else:
        body = openai_error(error.status, error.code, str(error))
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def error_event(error: GatewayError, dialect: Dialect) -> bytes:
    """Return an error as the last event of a stream; Anthropic's clients know it by its name."""
    name = b"event: error\n" if dialect is Dialect.ANTHROPIC else b""
    return name + b"data: " + error_body(error, dialect) + b"\n\n"


def error_headers(error: GatewayError) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", b"application/json")]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(math.ceil(error.retry_after)).encode()))
    return headers
