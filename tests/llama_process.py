"""A real llama.cpp server for tests, in a process of its own."""

import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.slow_process import slowed
from tests.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
HEALTHY_WITHIN = 120.0  # seconds; a tiny model takes less than one, a busy machine more


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
        started = self._starts_in_log()
        with self.log_file.open("ab") as log:
            self.process = process = subprocess.Popen(
                self.command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            # It answers a little before it listens to signals, which is when it says so.
            wait_until(
                lambda: (
                    process.poll() is not None
                    or (self.is_healthy() and self._starts_in_log() > started)
                ),
                within=HEALTHY_WITHIN,
            )
            assert process.poll() is None
        except AssertionError:
            self.kill()
            raise RuntimeError(f"llama.cpp's server failed to start:\n{self.log()}") from None

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.root_url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except urllib.error.HTTPError as error:  # 503 while it loads
            error.close()
            return False
        except OSError:  # not listening yet
            return False

    def wait_until_idle(self) -> None:
        """Until no slot works on a request any more whose test has gone."""
        key = {"Authorization": f"Bearer {self.api_key}"}
        asked = urllib.request.Request(f"{self.root_url}/slots", headers=key)

        def is_idle() -> bool:
            with urllib.request.urlopen(asked, timeout=HEALTHY_WITHIN) as response:
                return not any(slot["is_processing"] for slot in json.load(response))

        wait_until(is_idle, within=HEALTHY_WITHIN, what="an idle server")

    def metrics(self) -> dict[str, float]:
        """What it counts, where it was started with `--metrics`."""
        key = {"Authorization": f"Bearer {self.api_key}"}
        asked = urllib.request.Request(f"{self.root_url}/metrics", headers=key)
        with urllib.request.urlopen(asked, timeout=HEALTHY_WITHIN) as response:
            lines = response.read().decode().splitlines()
        pairs = [line.removeprefix("llamacpp:").rsplit(" ", 1) for line in lines if line[:1] != "#"]
        return {name: float(value) for name, value in pairs}

    def written(self) -> int:
        """The tokens of all answers that came to their end; of one that was cut off, none."""
        return int(self.metrics()["tokens_predicted_total"])

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def _starts_in_log(self) -> int:
        return self.log().count("listening on ")

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

    def slowed(self) -> AbstractContextManager[None]:
        """Let it run for a tenth of the time while the block lasts, also if it is ended there."""
        assert self.process is not None, "it does not run"
        return slowed(self.process.pid)

    def _end(self, signum: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signum)
        code = self.process.wait(timeout=HEALTHY_WITHIN)
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


# Below those that the system gives to who asks for any (from 32768): a port that a test has got and
# not yet used, or wants to be answered by nobody, is given to nobody else meanwhile.
FIRST_PORT, PORTS_OF_A_PROCESS = 12_000, 2_000
_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
_first = FIRST_PORT + _process * PORTS_OF_A_PROCESS
# Somewhere in our part of them: another run of the tests on this machine has the same part.
_offsets = itertools.count(random.randrange(PORTS_OF_A_PROCESS))


def free_port() -> int:
    """A loopback port that is free; each call of these tests is given another one."""
    while True:
        port = _first + next(_offsets) % PORTS_OF_A_PROCESS
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
