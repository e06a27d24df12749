"""Other ways to a model server, where their programs are on the PATH: llama-swap and Olla.

`docs/backends.md` says how to get them. Both stand in front of the server of a bench, as they stand
in front of one llama-server at home.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from bench.chat.stream import Completions, Side
from tests.backends.process import ProgramProcess
from tests.backends.programs import PROGRAMS
from tests.backends.stacks.llama_swaps import KEY, llama_swap
from tests.backends.stacks.ollas import olla

MODELS = ("paced", "unpaced")


@contextmanager
def proxies(base_url: str) -> Iterator[list[Side]]:
    """Yield a side for each proxy that this machine has."""
    root = base_url.removesuffix("/v1")
    makers = {"llama-swap": (_llama_swap, "/v1"), "olla": (_olla, "/olla/proxy/v1")}
    with ExitStack() as stack:
        sides = []
        for name, (make, path) in makers.items():
            if PROGRAMS[name].find() is None:
                print(f"{name}: skipped, there is none on the PATH")
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            process, address = make(folder, root)
            stack.enter_context(process)
            sides.append(
                Side(name, Completions(f"{address}{path}"), KEY, psutil.Process(process.pid))
            )
        yield sides


def _llama_swap(folder: Path, root: str) -> tuple[ProgramProcess, str]:
    # It starts a program for each model; here the server runs already, and has both under one name.
    model = {"cmd": "sleep infinity", "proxy": root, "aliases": list(MODELS)}
    return llama_swap(folder, {"models": {"server": model}})


def _olla(folder: Path, root: str) -> tuple[ProgramProcess, str]:
    return olla(folder, {"paced": root})
