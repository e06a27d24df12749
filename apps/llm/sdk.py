"""The OpenAI SDK: its client for one server, and its exceptions as ours. Imports it alone.

Importing this takes a second of CPU, a quarter of a process's start. Processes that send no
request do without; `client.load_sdk` imports it early where somebody would wait for it otherwise.
"""

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai  # noqa: TID251 - the one module that may

from apps.llm import certificates, errors
from apps.llm.addresses import UNSENDABLE_KEY, address_problem, is_valid_key
from apps.llm.endpoint import Endpoint
from apps.llm.failures.classify import classify_failure

AsyncOpenAI = openai.AsyncOpenAI

CONNECT_SECONDS = 5.0
# llama-server closes a connection after five idle seconds. One second less, and requests seldom
# meet a connection that is being closed.
IDLE_SECONDS = 4.0
# Permits limit what is sent, not the connection pool (aiohttp's default is 100 connections).
MAX_CONNECTIONS = 1000


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
        limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE_SECONDS),
        follow_redirects=False,
    )
    # No retries in the SDK: it would repeat what must not be repeated (a prompt that is too
    # long, an overflowed pool). The one policy is `transient` and belongs to the caller.
    return openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        http_client=http_client,
    )


async def open_stream(
    sdk: openai.AsyncOpenAI,
    method: str,
    url: str,
    body: Mapping[str, Any] | None,
    *,
    first_byte: float,
) -> httpx2.Response:
    """Send a request; return its response with the body unread.

    Args:
        first_byte: seconds until the first byte of the answer.
    """
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS, read=first_byte)
    if method == "GET":
        stream = await sdk.get(
            url,
            cast_to=object,
            options={"timeout": timeout},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
    else:
        stream = await sdk.post(
            url,
            cast_to=object,
            body=body,
            options={"timeout": timeout},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
    return stream.response


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
