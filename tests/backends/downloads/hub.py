"""Hugging Face as far as llama-server asks it: the branches, files and bytes of repositories."""

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHUNK = 64 * 1024


class Hub:
    """Serves `files`, GGUF files by "owner/name", while the `with` block lasts.

    Clear `flowing` to hold every file back after its first half.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.files = files
        self.flowing = threading.Event()
        self.flowing.set()
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
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
        path = self.path.partition("?")[0].strip("/")
        for repository, file in self.hub.files.items():
            if path == f"api/models/{repository}/refs":
                branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}
                return self._json({"branches": [branch]})
            if path == f"api/models/{repository}/tree/{COMMIT}":
                oid = hashlib.sha256(file.read_bytes()).hexdigest()
                size = file.stat().st_size
                lfs = {"oid": oid, "size": size}
                entry = {"type": "file", "path": file.name, "size": size, "oid": oid, "lfs": lfs}
                return self._json([entry])
            if path == f"{repository}/resolve/{COMMIT}/{file.name}":
                return self._file(file)
        return self._json({"error": "Repository not found"}, status=404)

    def _json(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _file(self, file: Path) -> None:
        body = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.end_headers()
        if self.command == "HEAD":
            return
        half = len(body) // 2
        self.wfile.write(body[:half])
        self.wfile.flush()
        self.hub.flowing.wait(60)
        self.wfile.write(body[half:])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the log of the test is for what failed."""
