"""Fetching the text behind a URL: a real web server on this machine, and addresses of all kinds."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from apps.chat.tools import fetching
from apps.core.tools import ToolError

PACE = threading.Event()
"""Never set: a slow server waits on it between its bytes."""


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow-headers":
            with suppress(OSError):  # the reader has gone
                while True:
                    self.wfile.write(b"H")
                    PACE.wait(0.02)
        if self.path == "/slow":
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            for _ in range(1200):  # a minute
                self.wfile.write(b"x")
                self.wfile.flush()
                PACE.wait(0.05)
            return
        kinds = {"/picture": "image/png", "/json": "application/json", "/big": "text/plain"}
        bodies = {"/json": b'{"a": 1}', "/big": b"x" * 3_000_000, "/host": b""}
        page = (
            "<html><head><title>Kettles</title><style>p {}</style></head><body><script>x()</script>"
            "<h1>All &amp; every</h1><p>One<br>two ä</p></body></html>"
        )
        self.send_response(302 if self.path == "/away" else 404 if self.path == "/gone" else 200)
        self.send_header("Location", "http://169.254.169.254/secrets")
        self.send_header("Content-Type", kinds.get(self.path, "text/html; charset=utf-8"))
        self.end_headers()
        body = bodies.get(self.path, page.encode())
        self.wfile.write(self.headers["Host"].encode() if self.path == "/host" else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(url: str) -> str:
    return asyncio.run(fetching.fetch(url, allow_private=True))


def test_headers_that_never_end(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.3)
    with pytest.raises(ToolError, match=r"it took longer than 0.3 s"):
        fetch(f"{site}/slow-headers")


def test_fetch_returns_status_type_and_readable_text(site: str) -> None:
    assert fetch(f"{site}/page?a=1") == "200 text/html\n\nKettles\nAll & every\nOne\ntwo ä"
    assert fetch(f"{site}/json") == '200 application/json\n\n{"a": 1}'
    assert fetch(f"{site}/gone").startswith("404 text/html")
    assert site.removeprefix("http://") in fetch(f"{site}/host")


def test_redirects_are_said_and_not_followed(site: str) -> None:
    assert fetch(f"{site}/away") == (
        "302: it redirects to http://169.254.169.254/secrets. Fetch that if you want it."
    )


def test_fetch_limits_bytes_types_and_time(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch(f"{site}/big").endswith("[Only the first 2,000,000 bytes were read.]")
    with pytest.raises(ToolError, match="image/png, which cannot be read"):
        fetch(f"{site}/picture")
    monkeypatch.setattr(fetching, "SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(ToolError, match="could not be read"):
        fetch(f"{site}/slow")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "file:///etc/passwd", "gopher://x/", "nothing", "", "http://",
        "http://user:word@example.org/", "http://exa mple.org/", "http://x/\r\nHost: y",
        "http://[::1", "http://example.org:99999/", "http://x/ä", "http://" + "a" * 3000,
    ],
)  # fmt: skip
def test_fetch_refuses_text_that_is_no_address(url: str) -> None:
    with pytest.raises(ToolError):
        asyncio.run(fetching.fetch(url))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
        "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1]", "[fc00::1]", "100.64.0.1",
        "2130706433", "0x7f.1", "127.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1",
    ],
)  # fmt: skip
def test_private_addresses_are_refused_however_they_are_written(host: str) -> None:
    with pytest.raises(ToolError, match=r"private address|not found|not a URL"):
        asyncio.run(fetching.fetch(f"http://{host}/"))


def test_a_name_that_leads_into_the_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One private address among public ones is enough; and it is asked only once."""
    asked = []

    def found(*args: object, **_: object) -> list[object]:
        asked.append(args)
        return [(2, 1, 6, "", ("8.8.8.8", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with pytest.raises(ToolError, match="private address"):
        asyncio.run(fetching.fetch("http://example.org/"))
    assert len(asked) == 1
