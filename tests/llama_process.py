"""A real llama.cpp server for tests, in a process of its own."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

REPOSITORY = Path(__file__).resolve().parent.parent
HEALTHY_WITHIN = 60.0  # seconds; a tiny model takes less than one, a busy machine more


class LlamaProcess:
    """Runs `apps.embedded.llama_server` while the `with` block lasts.

    with LlamaProcess(write_tiny_gguf(tmp_path / "tiny.gguf")) as llama:
        client = OpenAI(base_url=llama.base_url, api_key=llama.api_key)
    """

    api_key = "test-key"

    def __init__(
        self,
        model: Path,
        *flags: str,
        parallel: int = 2,
        context_per_slot: int = 1024,
        threads: int = 1,
        embeddings: bool = False,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="llama-"))
        key_file = self.folder / "key"
        key_file.write_text(self.api_key)
        self.log_file = self.folder / "log"
        self.port = free_port()  # kept over restarts, as an address in the settings would be
        self.command = [
            *(sys.executable, "-m", "apps.embedded.llama_server"),
            *("--model", str(model), "--port", str(self.port), "--api-key-file", str(key_file)),
            *("--parallel", str(parallel), "--context-per-slot", str(context_per_slot)),
            *("--threads", str(threads)),
            *(["--embeddings"] if embeddings else []),
            *flags,
        ]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + HEALTHY_WITHIN
        while not self.is_healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"llama.cpp's server did not start:\n{self.log()}")
            time.sleep(0.02)

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.root_url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except urllib.error.HTTPError as error:  # 503 while it loads
            error.close()
            return False
        except OSError:  # not listening yet
            return False

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self) -> int:
        """Ask it to end, as the supervisor does, and return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it if it runs, and start it on the same port."""
        self.stop()
        self.start()

    def _end(self, signum: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signum)
        code = self.process.wait(timeout=30)
        self.process = None
        return code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
