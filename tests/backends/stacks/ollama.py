"""Ollama as it comes: it reports neither slots nor context, and ignores fields it does not know."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.servers.facts.capacity import START_WIDTH
from tests.backends.backend import Backend
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.programs import command
from tests.backends.stacks import Stack
from tests.llama_process import free_port
from tests.stack import clean_env

NAME = "Ollama"
FAULTS = {
    "chat": "it does not report how many tokens of a prompt were cached",
    "embeddings": "it takes no mean over the tokens of a llama model whose file asks for it",
    "long prompt": "it cuts a prompt that is too long, and does not report it",
}


@contextmanager
def _ollama(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    port, program = free_port(), command("ollama")
    environment = {
        "OLLAMA_HOST": f"127.0.0.1:{port}",
        "OLLAMA_MODELS": str(folder / "models"),
        "OLLAMA_NUM_PARALLEL": "2",
        "HOME": str(folder),
    }
    process = ProgramProcess(
        [program, "serve"],
        ready_url=f"http://127.0.0.1:{port}/api/version",
        folder=folder,
        environment=environment,
    )
    with process:
        for name, path in (("alpha", models.path("alpha")), ("embed", models.embeddings)):
            file = folder / f"Modelfile.{name}"
            # More threads than cores that are free make it slower than one.
            file.write_text(f"FROM {path}\nPARAMETER num_thread 1\n")
            subprocess.run(
                [program, "create", name, "-f", str(file)],
                env=clean_env() | environment,
                check=True,
                capture_output=True,
                timeout=120,
            )
        yield Backend(
            NAME,
            "openai",
            f"http://127.0.0.1:{port}/v1",
            chat="alpha:latest",
            embeddings="embed:latest",
            slots=START_WIDTH,
            victim=process,
            faults=FAULTS,
        )


STACKS = (Stack(NAME, ("ollama",), _ollama),)
