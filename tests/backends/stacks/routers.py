"""llama-server as a router: of a folder of models, and of presets in an INI file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backends.backend import Backend, ServingProcess
from tests.backends.model_files import ModelFiles
from tests.backends.process import ProgramProcess
from tests.backends.relay import Relay
from tests.backends.stacks import Stack
from tests.backends.stacks.llama_servers import KEY, llama_server

FOLDER = "router, --models-dir"
PRESETS = "router, presets, --models-max 1"

PRESET_FILE = """version = 1

[*]
c = 8192

[alpha]
model = {models}/alpha.gguf
parallel = 2

[beta]
model = {models}/beta.gguf
parallel = 2
c = 4096

[broken]
model = {models}/broken.gguf

[embed]
model = {embeddings}
embeddings = true
parallel = 2
c = 4096
"""


def preset_router(
    folder: Path, models: ModelFiles, *, at_once: int = 1
) -> tuple[ProgramProcess, str]:
    presets = folder / "presets.ini"
    presets.write_text(PRESET_FILE.format(models=models.folder, embeddings=models.embeddings))
    return llama_server(
        folder,
        *("--models-preset", str(presets), "--models-max", str(at_once), "--api-key", KEY),
        name="router",
    )


def slots_of(root: str, model: str) -> ServingProcess:
    return ServingProcess(root, KEY, f"/slots?model={model}&autoload=false")


@contextmanager
def _presets(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    process, root = preset_router(folder, models)
    with process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            PRESETS,
            "router",
            f"{root}/v1",
            KEY,
            other="beta",
            embeddings="embed",
            broken="broken",
            one_at_a_time=True,
            slots=2,
            context=4096,
            unified=False,
            relay=relay,
            serving=[slots_of(root, "alpha")],
            victim=process,
        )


@contextmanager
def _folder(folder: Path, models: ModelFiles) -> Iterator[Backend]:
    flags = ("--models-dir", str(models.folder), "-np", "4", "-c", "8192", "--api-key", KEY)
    process, root = llama_server(folder, *flags, name="router")
    with process, Relay(int(root.rsplit(":", 1)[1])) as relay:
        yield Backend(
            FOLDER,
            "router",
            f"{root}/v1",
            KEY,
            other="beta",
            broken="broken",
            slots=4,
            context=2048,
            unified=False,
            relay=relay,
            serving=[slots_of(root, "alpha")],
            victim=process,
        )


STACKS = (
    Stack(FOLDER, ("llama-server",), _folder),
    Stack(PRESETS, ("llama-server",), _presets),
)
