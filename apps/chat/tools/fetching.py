"""The text of a web page, for a model that asks for it. Only where admins allow it.

Redirects are not followed: the model is told where they lead. A reply is read up to a size and for
a time.
"""

import asyncio
import html
import re
from urllib.parse import urlsplit

import httpx2
import nh3

from apps.core.outgoing import Limits, OutgoingError, guarded_client
from apps.core.tools import ToolError

MAX_BYTES = 2_000_000
SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_URL = 2000
READABLE = re.compile(r"^(text/|application/(.*\+)?(json|xml)\b)")
HEADERS = {"Accept": "text/*, application/json", "User-Agent": "Workbench"}


async def fetch(url: str, *, allow_private: bool = False) -> str:
    """Return the status, kind and text of a page.

    Raises:
        ToolError: the address is not allowed, there is no reply, or it is not text.
    """
    host = _host_of(url)
    limits = Limits(CONNECT_SECONDS, SECONDS)
    try:
        async with (
            asyncio.timeout(SECONDS),
            guarded_client(limits, allow_private=allow_private, headers=HEADERS) as client,
            client.stream("GET", url) as response,
        ):
            return await _read(response)
    except OutgoingError as error:
        raise ToolError(str(error)) from error
    except TimeoutError as error:
        raise ToolError(f"{host} could not be read: it took longer than {SECONDS:g} s.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        reason = str(error).strip(". ") or type(error).__name__
        raise ToolError(f"{host} could not be read: {reason}.") from error


async def _read(response: httpx2.Response) -> str:
    if 300 <= response.status_code < 400:
        place = response.headers.get("Location", "nowhere")
        return f"{response.status_code}: it redirects to {place}. Fetch that if you want it."
    kind = response.headers.get("Content-Type", "text/plain")
    if not READABLE.match(kind.lower()):
        raise ToolError(f"It is {kind.split(';')[0][:80]}, which cannot be read as text.")
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            break
    text = _decoded(body[:MAX_BYTES], response.charset_encoding or "utf-8")
    if "html" in kind.lower():
        text = text_of_html(text)
    cut = f"\n[Only the first {MAX_BYTES:,} bytes were read.]" if len(body) > MAX_BYTES else ""
    return f"{response.status_code} {kind.split(';')[0]}\n\n{text}{cut}"


def text_of_html(page: str) -> str:
    """Return the text of a page, without its markup."""
    blocks = re.sub(r"(?i)<(br|/p|/div|/li|/tr|/h[1-6]|/title)\b[^<>]*>", r"\g<0>\n", page)
    text = nh3.clean(blocks, tags=set(), clean_content_tags={"script", "style", "template"})
    lines = (" ".join(line.split()) for line in html.unescape(text).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _host_of(url: str) -> str:
    """Return the host of a valid URL.

    Raises:
        ToolError: it is not one.
    """
    if len(url) > MAX_URL or re.search(r"[\x00-\x20\x7f]", url):
        raise ToolError("This is not a valid URL. It is too long or has spaces.")
    try:
        parts = urlsplit(url)
        _ = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise ToolError("This is not a URL.") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise ToolError("Only addresses that begin with http:// or https:// can be fetched.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("URLs with a user name or password are not allowed.")
    if not f"{parts.path}{parts.query}".isascii():
        raise ToolError("Write the address with percent signs (%C3%A4) instead of such letters.")
    return host


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
