"""The OpenAI SDK: its client for one server, and its exceptions as ours. Imports it alone.

Importing this takes a quarter of the CPU of a process's start. Processes that send no
request do without; `client.load_sdk` imports it early where somebody would wait for it otherwise.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import aiohttp
import httpx2
import openai  # noqa: TID251 - the one module that may

from apps.llm import errors, timeouts
from apps.llm.addresses import UNSENDABLE_KEY, address_problem, is_valid_key
from apps.llm.endpoint import Endpoint
from apps.llm.failures.classify import classify_failure
from apps.llm.transport import certificates

AsyncOpenAI = openai.AsyncOpenAI

# Permits limit what is sent, not the connection pool (aiohttp's default is 100 connections).
MAX_CONNECTIONS = 1000

_http_clients: WeakKeyDictionary[openai.AsyncOpenAI, httpx2.AsyncClient] = WeakKeyDictionary()


def make_sdk(endpoint: Endpoint) -> openai.AsyncOpenAI:
    """The SDK's client for a server, over aiohttp: half of httpcore's CPU per token.

    Proxies named in the environment are used. Redirects are not followed, because they could carry
    the key to another server.

    Raises:
        BadAddress, Unauthorized: no request can carry this address or key.
        CertificateRefused: the file of the own CA is not readable.
    """
    if problem := address_problem(endpoint.base_url):
        raise errors.BadAddress(f"{problem} Correct it under Servers.")
    if not is_valid_key(endpoint.api_key):
        raise errors.Unauthorized(f"{UNSENDABLE_KEY} Enter the right one under Servers.")
    is_tls = urlsplit(endpoint.base_url).scheme == "https"
    http_client = openai.DefaultAioHttpClient(
        # Loading the system's certificates takes 20 ms: only where they are needed.
        verify=certificates.tls_context() if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS, keepalive_expiry=timeouts.IDLE_SECONDS
        ),
        follow_redirects=False,
    )
    # No retries in the SDK: it would repeat what must not be repeated (a prompt that is too
    # long, an overflowed pool). The one policy is `transient` and belongs to the caller.
    sdk = openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=timeouts.CONNECT_SECONDS),
        http_client=http_client,
    )
    _http_clients[sdk] = http_client
    return sdk


class ReplyFailed(Exception):
    """A reply with an error status."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.status_code, self.headers = response.status_code, response.headers
        self.content = response.content
        self.body: Any = response.text
        with suppress(ValueError, RecursionError):
            self.body = json.loads(response.content)


async def open_stream(
    sdk: openai.AsyncOpenAI,
    method: str,
    url: str,
    body: Mapping[str, Any] | bytes | None,
    *,
    headers: Mapping[str, str],
    first_byte: float,
) -> httpx2.Response:
    """Send a request; return its response with the body unread, for a `ResponseReader`.

    Sent by the client under the SDK: the SDK's own `post` copies and checks the request for 1 ms of
    CPU, as long as the rest of its way to the server takes.

    Args:
        url: absolute, or relative to the server's base URL.
        body: fields of JSON, or the bytes of a whole body.
        first_byte: seconds until the first byte of the answer.

    Raises:
        ReplyFailed: a reply with an error status.
        openai.APIConnectionError: no reply; APITimeoutError: none in time.
    """
    request = _http_clients[sdk].build_request(
        method,
        url if "://" in url else str(sdk.base_url).rstrip("/") + url,
        content=_content(body),
        headers=_headers(sdk, headers),
        timeout=httpx2.Timeout(None, connect=timeouts.CONNECT_SECONDS),
    )
    try:
        # Not as aiohttp's own time limit of reads: that sets a timer for each piece of the body.
        async with asyncio.timeout(first_byte):
            response = await _http_clients[sdk].send(request, stream=True)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise openai.APITimeoutError(request=request) from error
    except (httpx2.TransportError, aiohttp.ClientError) as error:
        raise openai.APIConnectionError(request=request) from error
    await _raise_for_status(response)
    return response


async def _raise_for_status(response: httpx2.Response) -> None:
    if response.status_code < 300:
        return
    try:
        async with asyncio.timeout(timeouts.GAP_SECONDS):
            await response.aread()
    except TimeoutError as error:
        raise openai.APITimeoutError(request=response.request) from error
    finally:
        await response.aclose()
    raise ReplyFailed(response)


def _content(body: Mapping[str, Any] | bytes | None) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="replace")  # half of a surrogate pair cannot be encoded


def _headers(sdk: openai.AsyncOpenAI, headers: Mapping[str, str]) -> httpx2.Headers:
    sent = httpx2.Headers(
        {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": sdk.user_agent,
            **sdk.auth_headers,
        }
    )
    sent.update(headers)
    return sent


def was_answered(error: BaseException) -> bool:
    """True if the server replied, with an error."""
    return isinstance(error, ReplyFailed | openai.APIStatusError)


def was_disconnected(error: BaseException | None) -> bool:
    """True if the server closed the connection before it answered."""
    while error is not None:
        if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
            return not isinstance(error, aiohttp.ClientConnectorError)
        error = error.__cause__
    return False


def translate(error: BaseException) -> errors.LLMError | None:
    """The exception of the SDK, httpx or aiohttp as ours; None where it is none of theirs."""
    match error:
        case ReplyFailed():
            return classify_failure(error.status_code, error.body, error.headers)
        case openai.APIStatusError():
            return classify_failure(error.status_code, error.body, error.response.headers)
        case openai.APITimeoutError() if not isinstance(error.__cause__, httpx2.ConnectTimeout):
            return errors.Stalled(
                "The model server did not respond in time. It may be stuck. Check its log."
            )
        case openai.APIConnectionError() | aiohttp.ClientResponseError():  # the latter: no HTTP
            return _refused_certificate(error) or errors.Unreachable(
                "The model server is not responding. Check that it is running and "
                "that the address is correct."
            )
        case openai.APIError():
            return classify_failure(None, error.body or str(error))
        case httpx2.TransportError() | aiohttp.ClientError():
            return errors.CutOff(
                "The connection to the model server was lost before the answer was "
                "complete. Retry or continue."
            )
    return None


def _refused_certificate(error: BaseException) -> errors.LLMError | None:
    """The reason why a TLS connection was not made; None where TLS is not the reason."""
    cause = error.__cause__
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectorCertificateError):
            cause = cause.certificate_error
        if isinstance(cause, ssl.SSLError):
            return certificates.tls_failure(cause)
        cause = cause.__cause__
    return None
