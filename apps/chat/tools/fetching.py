"""The text behind a URL, for a model that asks for it. Only where staff allow it.

The address is looked up once, checked, and the connection made to that very address: a name that
changes its mind in between (DNS rebinding) leads nowhere. Redirects are not followed: the model is
told where they lead. What comes is read up to a size and for a time.
"""

import html
import http.client
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import nh3

from apps.core import addresses
from apps.core.tools import ToolError

MAX_BYTES = 2_000_000
SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_URL = 2000
READABLE = re.compile(r"^(text/|application/(.*\+)?(json|xml)\b)")


def fetch(url: str, *, allow_private: bool = False) -> str:
    """What is there, as text: status, kind and content. Blocks; call it in a thread.

    Raises:
        ToolError: the address is not allowed, nobody answers, or it is no text.
    """
    deadline = time.monotonic() + SECONDS
    secure, host, port, target = _taken_apart(url)
    address = _address_of(host, port, allow_private=allow_private)
    connection = _Connection(host, port, address, secure=secure)
    # The time limits of a socket begin anew with each byte: a page of one now and then never ends.
    clock = threading.Timer(SECONDS, connection.break_off)
    clock.daemon = True
    clock.start()
    try:
        connection.request(
            "GET",
            target,
            headers={"Accept": "text/*, application/json", "User-Agent": "Workbench"},
        )
        response = connection.getresponse()
        if 300 <= response.status < 400:
            place = response.headers.get("Location", "nowhere")
            return f"{response.status}: it redirects to {place}. Fetch that if you want it."
        kind = response.headers.get("Content-Type", "text/plain")
        if not READABLE.match(kind.lower()):
            raise ToolError(f"It is {kind.split(';')[0][:80]}, which cannot be read as text.")
        body, whole = _read(response, connection, deadline)
        charset = response.headers.get_content_charset("utf-8")
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        why = f"it took longer than {SECONDS:g} s" if connection.is_late else _said(error)
        raise ToolError(f"{host} could not be read: {why}.") from error
    finally:
        clock.cancel()
        connection.close()
    text = _decoded(body, charset)
    if "html" in kind.lower():
        text = text_of_html(text)
    cut = "" if whole else f"\n[Only the first {MAX_BYTES:,} bytes were read.]"
    return f"{response.status} {kind.split(';')[0]}\n\n{text}{cut}"


def text_of_html(page: str) -> str:
    """What a page says, without its markup."""
    blocks = re.sub(r"(?i)<(br|/p|/div|/li|/tr|/h[1-6]|/title)\b[^<>]*>", r"\g<0>\n", page)
    text = nh3.clean(blocks, tags=set(), clean_content_tags={"script", "style", "template"})
    lines = (" ".join(line.split()) for line in html.unescape(text).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _taken_apart(url: str) -> tuple[bool, str, int, str]:
    """Whether it is https, host, port and what to ask the host for."""
    if len(url) > MAX_URL or re.search(r"[\x00-\x20\x7f]", url):
        raise ToolError("This is not a valid URL. It is too long or has spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise ToolError("This is not a URL.") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise ToolError("Only addresses that begin with http:// or https:// can be fetched.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("URLs with a user name or password are not allowed.")
    secure = parts.scheme == "https"
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    if not target.isascii():
        raise ToolError("Write the address with percent signs (%C3%A4) instead of such letters.")
    return secure, host, port or (443 if secure else 80), target


def _address_of(host: str, port: int, *, allow_private: bool) -> str:
    try:
        return addresses.address_of(host, port, allow_private=allow_private)
    except addresses.NotAllowed as error:
        raise ToolError(str(error)) from error


class _Connection(http.client.HTTPConnection):
    """To an address that was chosen before; the certificate is still checked for the name."""

    def __init__(self, host: str, port: int, address: str, *, secure: bool) -> None:
        super().__init__(host, port, timeout=CONNECT_SECONDS)
        self.default_port = 443 if secure else 80  # so that Host is written as it should be
        self._address = address
        self._context = ssl.create_default_context() if secure else None
        self.is_late = False

    def break_off(self) -> None:
        """Ends it from another thread, whatever it waits for."""
        self.is_late = True
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)


def _read(
    response: http.client.HTTPResponse, connection: _Connection, deadline: float
) -> tuple[bytes, bool]:
    """The body up to MAX_BYTES, and whether that is all of it."""
    pieces: list[bytes] = []
    size = 0
    while size < MAX_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"it took longer than {SECONDS:g} s")
        if connection.sock is not None:
            connection.sock.settimeout(left)
        piece = response.read1(min(65536, MAX_BYTES - size))
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), False


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _said(error: Exception) -> str:
    return str(error).strip(". ") or type(error).__name__
