"""What a model server would see: requests in flight, how many have ended, the most at a time.

It is independent of Redis. A request is a connection that is open; a process that is killed has its
connections closed by the system, and a model server would free their slots then.
"""

import socketserver
import threading
from types import TracebackType
from typing import Self

SERVER = 7
SLOTS = 4


class Gauge:
    def __init__(self) -> None:
        self.now = self.most = self.ended = 0
        self._lock = threading.Lock()
        gauge = self

        class Request(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                gauge._count(1)
                try:
                    self.request.recv(1)  # returns at the end, or fails when the other was killed
                except OSError:
                    pass
                finally:
                    gauge._count(-1)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Request)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def _count(self, step: int) -> None:
        with self._lock:
            self.now += step
            self.ended += step < 0
            self.most = max(self.most, self.now)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
