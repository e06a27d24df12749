"""What a running backend is to the checks: its address, what it is known as, how to count."""

import json
import ssl
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.backends.process import ProgramProcess
from tests.backends.relay import Relay


@dataclass(frozen=True)
class ServingProcess:
    """A llama-server's own root, where its slots are seen."""

    url: str
    key: str = ""
    slots_path: str = "/slots"
    tls: ssl.SSLContext | None = None

    def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60, context=self.tls) as response:
            return json.load(response)

    def is_busy(self) -> bool:
        return any(slot["is_processing"] for slot in self.get(self.slots_path))


@dataclass
class Backend:
    """A program, or a chain of them, that runs."""

    name: str
    kind: str
    base_url: str
    """The address that a person enters, of the program itself."""
    api_key: str = ""
    chat: str = "alpha"
    other: str | None = None
    """A second chat model."""
    embeddings: str | None = None
    broken: str | None = None
    """A model whose file is broken."""
    knows_models: bool = True
    """False: any name of a model is answered by the only one."""
    one_at_a_time: bool = False
    """Only one model fits into memory."""
    stated: Mapping[str, Any] = field(default_factory=dict)
    """What a person states when they add it."""
    slots: int = 1
    context: int | None = None
    """Tokens per slot, as the workbench knows it once the model is loaded."""
    unified: bool | None = None
    forgotten: tuple[str, str] | None = None
    """The address without a part of it, and words of the advice that follows."""
    gone_code: str = "unreachable"
    """Code of a chat's error while `victim` is away."""
    cut_code: str = "cut_off"
    """Code of a chat's error when `victim` is killed while it answers."""
    relay: Relay | None = None
    """Counts, in front of it; None where the server's own numbers are read instead."""
    serving: Sequence[ServingProcess] = ()
    """Who has the slots of the chat model; none where nobody shows them."""
    victim: ProgramProcess | None = None
    """Killed and started again in the middle of work."""
    ca_file: str = ""
    folder: Path = Path()
    """Where its programs work, and write their logs."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """By check: why the program fails it."""

    def slowed(self) -> AbstractContextManager[None]:
        """Make it write slowly while the block lasts, where its process is known."""
        return self.victim.slowed() if self.victim else nullcontext()

    @property
    def counted_url(self) -> str:
        """The address through the relay."""
        if self.relay is None:
            return self.base_url
        scheme, rest = self.base_url.split("://", 1)
        _, path = rest.split("/", 1)
        return f"{scheme}://127.0.0.1:{self.relay.port}/{path}"
