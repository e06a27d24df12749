"""What is started: each stack is a program as people set it up, or a chain of two."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.backends.backend import Backend
from tests.backends.model_files import ModelFiles

Open = Callable[[Path, ModelFiles], AbstractContextManager[Backend]]


@dataclass(frozen=True)
class Stack:
    """Its name in the table, the programs it takes, and how it is started."""

    name: str
    programs: tuple[str, ...]
    open: Open


def all_stacks() -> dict[str, Stack]:
    from tests.backends.stacks import (
        chains,
        litellm,
        llama_servers,
        llama_swaps,
        ollama,
        ollas,
        routers,
    )

    kinds = (llama_servers, routers, llama_swaps, ollas, litellm, ollama, chains)
    return {stack.name: stack for module in kinds for stack in module.STACKS}
