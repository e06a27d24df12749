"""Validates addresses and keys of model servers. Pure."""

import re
from functools import lru_cache
from urllib.parse import urlsplit

import httpx2

# No user name, password or backslash: parsers disagree about which host such an address means.
ADDRESS_PATTERN = r"^https?://[\w.:\[\]-]+(/[\w./~-]*)?$"
EXAMPLE = "Enter an address such as http://127.0.0.1:8080/v1."
_WITHOUT_SCHEME = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d+)?(/.*)?")
LARGEST_PORT = 65535
_DEFAULT_PORTS = {"http": 80, "https": 443}
UNSENDABLE_KEY = "The key has characters that no HTTP header can carry."


def normalised_base_url(url: str) -> str:
    """Return the address as the OpenAI SDK needs it: no trailing slash, ending in /v1.

    Addresses without a scheme, such as `localhost:8080`, become http.
    """
    url = url.strip().rstrip("/")
    if _WITHOUT_SCHEME.fullmatch(url):
        url = f"http://{url}"
    return url if url.endswith("/v1") else f"{url}/v1"


@lru_cache(maxsize=256)
def canonical_address(url: str) -> str:
    """Return a text that is the same for two spellings of one server's address.

    Letter case of scheme and host, a port that the scheme implies, `localhost` for 127.0.0.1, and
    what `normalised_base_url` adds or cuts. Other names of one machine stay apart: which program
    answers there only a request would show.
    """
    url = normalised_base_url(url)
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return url
    if host == "localhost":
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{port or _DEFAULT_PORTS.get(parts.scheme, '')}{parts.path}"


def validate_address(url: str) -> str:
    """Return the normalised address.

    Raises:
        ValueError: no request could be sent there. The message gives the reason.
    """
    url = normalised_base_url(url)
    if not re.fullmatch(ADDRESS_PATTERN, url):
        raise ValueError(EXAMPLE)
    if problem := address_problem(url):
        raise ValueError(f"{problem} {EXAMPLE}")
    return url


def address_problem(url: str) -> str:
    """Return the reason why no request can be sent to this URL; "" where one can."""
    try:
        parsed = httpx2.URL(url)
        # As the operating system resolves it: no label may be empty or over 63 letters.
        host = parsed.host.encode("idna")
    except (httpx2.InvalidURL, ValueError) as error:  # UnicodeError is a ValueError
        return f"“{url}” is not a valid address: {str(error).rstrip('.')}."
    if parsed.scheme not in {"http", "https"}:
        return f"“{url}” does not begin with http:// or https://."
    if not host or b"%" in host or b"[" in host or b"]" in host:
        return f"“{url}” has no valid host name."
    if parsed.userinfo:
        return f"“{url}” contains a user name. Enter the key in its own field."
    if parsed.port is not None and not 0 < parsed.port <= LARGEST_PORT:
        return f"“{url}” has a port that does not exist: {parsed.port}."
    return ""


def is_valid_key(key: str) -> bool:
    """True if a header can carry the key: ASCII, without line breaks."""
    return key.isascii() and key.isprintable()
