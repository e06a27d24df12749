"""Hugging Face as far as a download of one file asks it."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

TERABYTES = 10**15


class Hub:
    """Serves `files` as those of alice/models while the `with` block lasts; other owners fail.

    Clear `flowing` to hold every file back after its first half.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.version = "1"
        self.ranges: list[str] = []
        """The Range of each GET; "" without one."""
        self.breaks = 0
        """So many connections break off in the middle of a file."""
        self.flowing = threading.Event()
        self.flowing.set()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flowing.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        owner = self.path.split("/")[1]
        if owner == "bob":
            return self._refuse(401, "RepoNotFound")
        if owner == "gated":
            return self._refuse(403, "GatedRepo")
        if owner == "broken":
            return self._refuse(418, "")
        if not self.path.startswith("/alice/models/resolve/main/"):
            return self._refuse(404, "RepoNotFound")
        name = self.path.partition("/resolve/main/")[2]
        if name == "huge.gguf":
            return self._begin(200, name, TERABYTES)
        if name not in self.hub.files:
            return self._refuse(404, "EntryNotFound")
        return self._send(name, self.hub.files[name])

    def _send(self, name: str, body: bytes) -> None:
        wanted = self.headers.get("Range", "")
        start = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        rest = body[start:]
        self._begin(206 if wanted else 200, name, len(rest))
        if self.command == "HEAD":
            return
        self.hub.ranges.append(wanted)
        half = len(rest) // 2
        self.wfile.write(rest[:half])
        if self.hub.breaks:
            self.hub.breaks -= 1
            self.close_connection = True
            return
        self.hub.flowing.wait(60)
        self.wfile.write(rest[half:])

    def _begin(self, status: int, name: str, size: int) -> None:
        self.send_response(status)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{name}-{self.hub.version}"')
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the log of the test is for what failed."""
