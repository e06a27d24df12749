"""Trusted proxies: X-Forwarded-For is read from these alone."""

from collections.abc import Sequence
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


def behind(proxies: Sequence[str], application: Any) -> Any:
    """Wraps an ASGI application: X-Forwarded-For of these addresses and networks is believed.

    Of no others: whoever may choose an address guesses passwords without end.
    """
    return ProxyHeadersMiddleware(application, list(proxies)) if proxies else application
