"""Model files of settings like WORKBENCH_CHAT_MODEL; one on Hugging Face is downloaded once.

Without `tell` nothing is downloaded: a missing file is taken to be where its download will put it.
"""

from dataclasses import dataclass
from pathlib import Path

from apps.embedded.errors import StartError
from apps.embedded.model_files import embedding_model
from apps.embedded.model_files.download import HubFile, Tell, download
from apps.embedded.model_files.gguf_size import CUT_OFF, is_cut_off
from apps.runtime.download_progress import DownloadProgress

GGUF_MAGIC = b"GGUF"
DEMO_MODEL = Path("demo/workbench-demo.gguf")
DEMO_CONTEXT = 2048  # tokens per slot
OWN_CONTEXT = 4096  # tokens per slot; llama.cpp lowers it to what the model was trained for


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    name: str
    """As the setting has it."""
    path: Path
    context_per_slot: int


def chat_model(chosen: str, *, root: Path, folder: Path, tell: Tell | None = None) -> ModelFile:
    """Return the chosen chat model, or the demo model of the repository.

    Raises:
        StartError: the file is missing, not a complete GGUF file, or cannot be downloaded.
    """
    if chosen:
        path = _resolve(chosen, "WORKBENCH_CHAT_MODEL", folder, tell)
        return ModelFile(name=chosen, path=path, context_per_slot=OWN_CONTEXT)
    path = root / DEMO_MODEL
    check_gguf(path, "WORKBENCH_CHAT_MODEL")
    return ModelFile(name=path.stem, path=path, context_per_slot=DEMO_CONTEXT)


def embed_model(chosen: str, *, folder: Path, tell: Tell | None = None) -> ModelFile:
    """Return the chosen embedding model, or the one converted from all-MiniLM-L6-v2.

    Raises:
        StartError: the file is missing, not a complete GGUF file, or cannot be downloaded.
    """
    if chosen:
        path = _resolve(chosen, "WORKBENCH_EMBED_MODEL", folder, tell)
        return ModelFile(name=chosen, path=path, context_per_slot=DEMO_CONTEXT)
    name, path = embedding_model.NAME, folder / embedding_model.FILE_NAME
    if tell is not None and not path.exists():
        tell(DownloadProgress(model=name))
        path = embedding_model.prepare(folder, report=lambda sentence: None)
    return ModelFile(name=name, path=path, context_per_slot=DEMO_CONTEXT)


def check_gguf(path: Path, setting: str) -> None:
    """Check the file first: llama.cpp would report a bad one in twenty lines.

    Raises:
        StartError: the file is unreadable, not GGUF, or incomplete.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise StartError(
            f"The model file {path} ({setting}) cannot be read: {error.strerror}."
        ) from error
    if magic != GGUF_MAGIC:
        raise StartError(f"The model file {path} ({setting}) is not a GGUF file.")
    if is_cut_off(path):
        raise StartError(f"The model file {path} ({setting}) {CUT_OFF}")


def _resolve(chosen: str, setting: str, folder: Path, tell: Tell | None) -> Path:
    path = Path(chosen).expanduser().absolute()
    on_hub = HubFile.parse(chosen)
    if on_hub and not path.exists():
        path = on_hub.path(folder)
        if tell is not None:
            download(on_hub, folder, setting, tell)
        elif not path.exists():
            return path
    check_gguf(path, setting)
    return path
