"""What other rooms provide to this one of a server's machine: each registers once."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from apps.llm.endpoint import Endpoint
from apps.servers.models import Server


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of a server's machine."""

    name: str
    """As its driver names it; "": not reported."""
    memory: int
    """MiB, all of it."""


GpuReader = Callable[[Server], Awaitable[Sequence[Gpu]]]

_gpu_readers: list[GpuReader] = []


def register_gpus(reader: GpuReader) -> None:
    _gpu_readers[:] = [reader]


async def read_gpus(server: Server) -> Sequence[Gpu]:
    """The GPUs of a server's machine; []: not reported."""
    return await _gpu_readers[0](server) if _gpu_readers else []


@dataclass(frozen=True, slots=True)
class TrialServers:
    """A second process of a server that Workbench started itself."""

    can_try: Callable[[Server], bool]
    open: Callable[[Server, int, int], AbstractAsyncContextManager[Endpoint | None]]
    """Takes the server, the micro-batch, and the tokens of its one slot."""


_trials: list[TrialServers] = []


def register_trial_servers(trials: TrialServers) -> None:
    _trials[:] = [trials]


def can_try(server: Server) -> bool:
    """True if a second process of this server can be started to measure it. Reads files."""
    return bool(_trials) and _trials[0].can_try(server)


def open_trial(
    server: Server, ubatch: int, context: int
) -> AbstractAsyncContextManager[Endpoint | None]:
    """Run a second process until the block ends; None: it did not start."""
    return _trials[0].open(server, ubatch, context) if _trials else nullcontext(None)
