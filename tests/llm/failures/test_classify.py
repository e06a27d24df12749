"""Every way in which a server or proxy says no, word for word, and what becomes of it."""

from typing import Any

import pytest

from apps.llm import errors
from apps.llm.failures import error_text
from apps.llm.failures.classify import classify_failure


def llama(code: int, kind: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind, **more}}


def swap(message: str, kind: str = "server_error", code: str = "") -> dict[str, Any]:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return {"src": "llama-swap", "error": error}


def litellm(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": None, "param": None, "code": code}}


LITELLM_TOO_LONG = (
    "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
    "OpenAIException - request (9210 tokens) exceeds the available context size (4096 tokens), "
    "try increasing it. Received Model Group=m\nAvailable Model Group Fallbacks=None"
)

REPLIES = [
    # llama-server
    (
        400,
        llama(400, "exceed_context_size_error", "x", n_prompt_tokens=9210, n_ctx=4096),
        errors.PromptTooLong,
        "The prompt has 9,210 tokens, but the context per slot is 4,096. Shorten it, or start the "
        "server with a larger -c.",
    ),
    (
        400,
        llama(400, "invalid_request_error", "Failed to parse grammar"),
        errors.BadRequest,
        "The server rejected the request: Failed to parse grammar",
    ),
    (
        401,
        llama(401, "authentication_error", "Invalid API Key"),
        errors.Unauthorized,
        "The API key was rejected. Update it under Servers.",
    ),
    (
        404,
        llama(404, "not_found_error", "File Not Found"),
        errors.UnknownModel,
        "Unknown model or address: File Not Found",
    ),
    (
        500,
        llama(500, "server_error", "Context size has been exceeded."),
        errors.PoolExhausted,
        "The requests in flight outgrew the server's shared context and all were ended. "
        "Start the server with -np given, or with a larger -c.",
    ),
    (
        500,
        llama(
            500,
            "server_error",
            "input (801 tokens) is too large to process. increase the physical batch size "
            "(current batch size: 512)",
        ),
        errors.InputTooLarge,
        "A text is 801 tokens long, the embedding server takes 512. Shorten it, or start the "
        "server with a larger -ub.",
    ),
    (
        501,
        llama(
            501,
            "not_supported_error",
            "This server does not support embeddings. Start it with `--embeddings`",
        ),
        errors.NotSupported,
        "The server was started without this feature: This server does not support embeddings. "
        "Start it with `--embeddings`",
    ),
    (
        503,
        llama(503, "unavailable_error", "Loading model"),
        errors.Loading,
        "The server is loading the model.",
    ),
    (
        500,
        llama(500, "server_error", "Compute error."),
        errors.ServerFailed,
        "Model server error: Compute error.",
    ),
    # Router
    (
        400,
        llama(400, "invalid_request_error", "model 'X' not found"),
        errors.UnknownModel,
        "Unknown model: model 'X' not found",
    ),
    (
        400,
        llama(400, "invalid_request_error", "model is not loaded"),
        errors.NotLoaded,
        "The model is not loaded and the server does not load models automatically. Load "
        "it under Servers.",
    ),
    (
        500,
        llama(500, "server_error", "model name=X failed to load"),
        errors.LoadFailed,
        "The model failed to start: model name=X failed to load. See the server’s log.",
    ),
    (
        500,
        "proxy error: Connection reset by peer",
        errors.BackendGone,
        "The proxy answers, the model server behind it does not: proxy error: Connection reset by "
        "peer. Is it running?",
    ),
    # llama-swap, now and before August 2026
    (
        404,
        swap("no router for requested model", "invalid_request_error", "model_not_found"),
        errors.UnknownModel,
        "Unknown model: no router for requested model",
    ),
    (
        429,
        swap("Too many requests", "rate_limit_error", "concurrency_limit"),
        errors.Busy,
        "llama-swap takes no more requests for this model at a time, the waiting ones included "
        "(10, unless its concurrencyLimit says otherwise).",
    ),
    (
        500,
        swap("unspecific error: health check timed out after 2m0s"),
        errors.LoadFailed,
        "The model failed to start: health check timed out after 2m0s. See the server’s log.",
    ),
    (
        500,
        {
            "error": "unspecific error: upstream command exited prematurely",
            "src": "llama-swap",
        },
        errors.LoadFailed,
        "The model failed to start: upstream command exited prematurely. See the server’s log.",
    ),
    (
        None,
        {
            "error": {
                "message": "litellm.APIError: APIError: OpenAIException - peer closed connection "
                "without sending complete message body (incomplete chunked read)",
                "type": None,
                "param": None,
                "code": "500",
            }
        },
        errors.CutOff,
        errors.CUT_OFF,
    ),
    (
        500,
        "unable to start process: command [/opt/llama-server --api-key hunter2 -m /m/a.gguf] "
        "exit status 1",
        errors.LoadFailed,
        "The model failed to start: unable to start process: its command ended with exit status 1. "
        "See the server’s log.",
    ),
    (
        503,
        swap("process was stopped", "service_unavailable"),
        errors.Loading,
        "llama-swap just stopped this model. The next request starts it again.",
    ),
    # Olla
    (
        429,
        "Too Many Requests\n",
        errors.Busy,
        "The server’s request limit is reached: Too Many Requests",
    ),
    (
        413,
        "Request body too large\n",
        errors.RequestTooLarge,
        "The request is larger than the proxy takes: Request body too large. Send less, or "
        "raise its limit of bytes per request.",
    ),
    (
        502,
        "Proxy error: all endpoints failed: dial tcp 127.0.0.1:9931: connect: connection refused",
        errors.BackendGone,
        "The proxy answers, the model server behind it does not: Proxy error: all endpoints "
        "failed: dial tcp 127.0.0.1:9931: connect: connection refused. Is it running?",
    ),
    (
        502,
        "Proxy error: request timed out after 30.0s: net/http: timeout awaiting response headers",
        errors.ProxyTimeout,
        "The proxy gave up waiting for the model server's first byte (Olla does after 30 seconds "
        "unless told otherwise). Raise its response_header_timeout.",
    ),
    # LiteLLM
    (
        400,
        litellm(LITELLM_TOO_LONG, "400"),
        errors.PromptTooLong,
        "The prompt has 9,210 tokens, but the context per slot is 4,096. Shorten it, or start the "
        "server with a larger -c.",
    ),
    (
        400,
        litellm("litellm.BadRequestError: OpenAIException - Invalid schema", "400"),
        errors.BadRequest,
        "The server rejected the request: Invalid schema",
    ),
    (
        400,
        litellm("/chat/completions: Invalid model name passed in model=qwen.", "400"),
        errors.UnknownModel,
        "Unknown model: /chat/completions: Invalid model name passed in model=qwen.",
    ),
    (
        401,
        litellm("Authentication Error, Received API Key = sk-...1234, Unable to find", "401"),
        errors.Unauthorized,
        "The API key was rejected. Update it under Servers.",
    ),
    (
        429,
        litellm("No deployments available for selected model, Try again in 5 seconds.", "429"),
        errors.Busy,
        "The proxy has no server for this model right now; it allows another try in 5 seconds.",
    ),
    (
        500,
        litellm(
            "litellm.InternalServerError: InternalServerError: OpenAIException - Connection "
            "error.. Received Model Group=m\nAvailable Model Group Fallbacks=None",
            "500",
        ),
        errors.BackendGone,
        "The proxy answers, the model server behind it does not: Connection error. Is it running?",
    ),
    (  # as its proxy 1.106 says it
        500,
        litellm(
            "litellm.InternalServerError: InternalServerError: OpenAIException - Connection "
            "error. LiteLLM: model group 'gone' failed with the error above. No fallback was "
            "attempted.",
            "500",
        ),
        errors.BackendGone,
        "The proxy answers, the model server behind it does not: Connection error. Is it running?",
    ),
    (  # a key rejected, where it has no database
        400,
        litellm("No connected db.", "400"),
        errors.Unauthorized,
        "The API key was rejected. Update it under Servers.",
    ),
    # In the stream, where there is no status
    (
        None,
        llama(500, "server_error", "Context size has been exceeded."),
        errors.PoolExhausted,
        None,
    ),
    (None, litellm("litellm.RateLimitError: slow down", "429"), errors.Busy, None),
    (None, swap("unspecific error: process exited prematurely"), errors.LoadFailed, None),
    (None, "no JSON at all", errors.ServerFailed, "Model server error: no JSON at all"),
    # Whatever else stands in between
    (404, {"detail": "Not Found"}, errors.UnknownModel, None),
    (
        422,
        {"detail": [{"loc": ["body", "model"], "msg": "Field required"}]},
        errors.BadRequest,
        "The server rejected the request: Field required",
    ),
    (403, {"detail": "Forbidden"}, errors.Unauthorized, None),
    (
        502,
        "<html><head><title>502 Bad Gateway</title></head><body><script>alert(1)</script></body>",
        errors.BackendGone,
        "The proxy answers, the model server behind it does not: 502 Bad Gateway. Is it running?",
    ),
    (400, {"message": "max_tokens must be at least 1, got -186."}, errors.PromptTooLong, None),
    (504, "upstream request timeout", errors.ProxyTimeout, None),
    (524, "error code: 524", errors.ProxyTimeout, None),
    *((status, f"error code: {status}", errors.BackendGone, None) for status in (520, 525, 526)),
    (503, {"error": {"message": "The engine is currently overloaded"}}, errors.Busy, None),
    (503, {"error": {"message": "No slot.", "code": "slots_exhausted"}}, errors.Busy, None),
    (503, "<html><title>503 Service Temporarily Unavailable</title>", errors.BackendGone, None),
    (498, {"error": {"message": "Flex tier capacity exceeded"}}, errors.Busy, None),
    (529, {"type": "error", "error": {"type": "overloaded_error"}}, errors.Busy, None),
    (503, "<html>no title</html>", errors.BackendGone, None),
    (521, "error code: 521", errors.BackendGone, None),
    (500, "", errors.ServerFailed, "Model server error: HTTP 500."),
    (500, None, errors.ServerFailed, "Model server error: HTTP 500."),
    (500, ["a", "list"], errors.ServerFailed, None),
]


@pytest.mark.parametrize(("status", "body", "kind", "sentence"), REPLIES)
def test_each_reply_is_one_error(
    status: int | None, body: Any, kind: type[errors.LLMError], sentence: str | None
) -> None:
    error = classify_failure(status, body)
    assert type(error) is kind
    assert sentence is None or str(error) == sentence
    assert "<" not in str(error)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota"}},
        {"error": {"message": "You exceeded your current quota, check your plan.", "code": "x"}},
        {"error": {"message": "no", "code": "insufficient_quota"}},
    ],
)
def test_a_quota_that_is_used_up_is_not_waited_for(body: Any) -> None:
    error = classify_failure(429, body, {"retry-after": "1"})
    assert isinstance(error, errors.QuotaExceeded)
    assert not error.transient
    assert "quota" in str(error)


def test_a_quota_a_minute_is_waited_out() -> None:
    said = "You exceeded your current quota: 15 requests a minute. " + "See the page. " * 40
    error = classify_failure(
        429, {"error": {"message": said + "Please retry in 36.5s.", "code": 429}}
    )
    assert isinstance(error, errors.Busy)
    assert error.retry_after == 36.5


def test_money_that_is_used_up() -> None:
    error = classify_failure(402, {"error": {"message": "Insufficient Balance"}})
    assert isinstance(error, errors.QuotaExceeded)


def test_the_wait_is_read_from_the_reply() -> None:
    error = classify_failure(429, "Too Many Requests", {"retry-after": "7"})
    assert isinstance(error, errors.Busy)
    assert error.retry_after == 7


def test_rate_limit_says_whose_limit_it_is() -> None:
    limits = [
        classify_failure(429, body)
        for body in (swap("Too many requests", code="concurrency_limit"), "Too Many Requests", {})
    ]
    assert [getattr(limit, "limit", "") for limit in limits] == [
        "llama-swap's concurrencyLimit",
        "the proxy's rate limit",
        "the server's limit",
    ]


def test_a_long_message_is_cut() -> None:
    assert len(error_text.error_message("x" * 10_000)) == error_text.MESSAGE_LENGTH


@pytest.mark.parametrize("secret", ["sk-abcdef123456", "wb_abcdef123456", "Bearer abcdef123456"])
def test_a_key_that_a_server_repeats_is_left_out(secret: str) -> None:
    error = classify_failure(400, {"error": {"message": f"got {secret} in the header"}})
    assert "abcdef" not in str(error)


@pytest.mark.parametrize(
    ("body", "tokens", "context"),
    [
        (
            {
                "error": {
                    "message": "This model's maximum context length is 8192 tokens. However, your "
                    "messages resulted in 9000 tokens.",
                    "code": "context_length_exceeded",
                }
            },
            9000,
            8192,
        ),
        (
            {
                "object": "error",
                "message": "This model's maximum context length is 2048 tokens. However, you "
                "requested 2500 tokens (2000 in the messages, 500 in the completion).",
                "code": 400,
            },
            2500,
            2048,
        ),
        (
            {"message": "The decoder prompt (length 2500) is longer than the maximum model length "
             "of 2048."},
            2500,
            2048,
        ),
        (
            {"error": {"message": "The input (9000 tokens) is longer than the model's context "
             "length (8,192 tokens)."}},
            9000,
            8192,
        ),
        ({"error": {"message": "Too long.", "code": "context_length_exceeded"}}, None, None),
    ],
)  # fmt: skip
def test_a_prompt_too_long_for_other_servers(
    body: Any, tokens: int | None, context: int | None
) -> None:
    error = classify_failure(400, body)
    assert isinstance(error, errors.PromptTooLong)
    assert (error.tokens, error.context) == (tokens, context)
