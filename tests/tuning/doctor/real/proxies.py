"""Proxies with a fault, in front of a real server; each runs in threads of its own."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding"}


class Proxy(BaseHTTPRequestHandler):
    """Passes every request on, and its answer as it comes."""

    port = 0

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        upstream = HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON
        }
        try:
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.pass_on(answer)
        finally:
            upstream.close()

    def pass_on(self, answer: HTTPResponse) -> None:
        while data := answer.read1(65_536):
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class ReadingOn(Proxy):
    """Reads an answer to its end though its client has gone."""

    def pass_on(self, answer: HTTPResponse) -> None:
        while data := answer.read1(65_536):
            with suppress(OSError):
                self.wfile.write(data)


class Buffering(Proxy):
    """Sends an answer on when it is complete."""

    def pass_on(self, answer: HTTPResponse) -> None:
        self.wfile.write(answer.read())


class Silent(Proxy):
    """Passes on what computes nothing, and never answers a chat: as a server that is stuck."""

    def do_POST(self) -> None:
        if self.path.endswith("/chat/completions"):
            self.rfile.read()  # until the client has gone
        else:
            super().do_POST()


class Cutting(Proxy):
    """Ends an answer at its first piece, as a proxy does whose time is over."""

    def pass_on(self, answer: HTTPResponse) -> None:
        self.wfile.write(answer.read1(200))


@contextmanager
def before(url: str, kind: type[Proxy]) -> Iterator[str]:
    """Run a proxy in front of a server on this machine.

    Args:
        url: of the server, with its path.

    Yields:
        The same address at the proxy.
    """
    place = urlsplit(url)
    handler = type(kind.__name__, (kind,), {"port": place.port})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{place.path}"
        finally:
            server.shutdown()
            thread.join(30)
