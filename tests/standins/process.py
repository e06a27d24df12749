"""A stand-in in a child process, as a test sees it."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from tests.llama_process import REPOSITORY, LlamaProcess, free_port
from tests.standins.state import Config, Model
from tests.waiting import wait_until

READY_WITHIN = 120.0


class Standin:
    """Runs while the `with` block lasts.

    Args:
        kind: router, llama-swap, olla, litellm, strict or saturating.
        llama: who answers what is forwarded; None: nothing is.
        embeddings: who answers for models with `embeddings`.
        settings: see the package.
    """

    def __init__(
        self,
        kind: str,
        llama: LlamaProcess | None,
        *,
        embeddings: LlamaProcess | None = None,
        models: list[Model] | None = None,
        **settings: Any,
    ) -> None:
        self.kind = kind
        self.port = free_port()
        upstream = (llama.root_url, llama.api_key) if llama else ("",)
        config = Config(*upstream, **settings)
        if models is not None:
            config.models = models
        if embeddings is not None:
            config.embeddings_upstream = embeddings.root_url
            config.embeddings_key = embeddings.api_key
        self.config = config
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/olla/openai/v1" if self.kind == "olla" else f"{self.root_url}/v1"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Every request, in order: method, path, query, model, status (0: not answered yet)."""
        return list(self._report()["asked"])

    @property
    def paths(self) -> list[str]:
        return [asked["path"] for asked in self.asked]

    @property
    def loads(self) -> list[dict[str, str]]:
        """Every load of a model, in order: the model and the path whose request caused it."""
        return list(self._report()["loads"])

    @property
    def most(self) -> dict[str, int]:
        """Most requests in flight at once, by model."""
        return dict(self._report()["most"])

    @property
    def states(self) -> dict[str, str]:
        return dict(self._report()["state"])

    def change(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self.config, name, value)
        self._report(asdict(self.config))

    def start(self) -> None:
        process = self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.standins", self.kind, str(self.port)),
                json.dumps(asdict(self.config)),
            ],
            cwd=REPOSITORY,
        )
        try:
            wait_until(lambda: process.poll() is not None or self._answers(), within=READY_WITHIN)
            assert process.poll() is None, "the stand-in ended"
        except AssertionError:
            self.kill()
            raise

    def _answers(self) -> bool:
        try:
            self._report()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _report(self, change: dict[str, Any] | None = None) -> dict[str, Any]:
        body = None if change is None else json.dumps(change).encode()
        request = urllib.request.Request(f"{self.root_url}/_standin", data=body)
        with urllib.request.urlopen(request, timeout=READY_WITHIN) as response:
            report: dict[str, Any] = json.load(response)
            return report

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
