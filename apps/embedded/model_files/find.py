"""Model files of settings like WORKBENCH_CHAT_MODEL; one on Hugging Face is downloaded once."""

import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apps.embedded.errors import StartError
from apps.embedded.model_files import embedding_model
from apps.embedded.model_files.gguf_size import CUT_OFF, is_cut_off

GGUF_MAGIC = b"GGUF"
DEMO_MODEL = Path("demo/workbench-demo.gguf")
DEMO_CONTEXT = 2048  # tokens per slot
OWN_CONTEXT = 4096  # tokens per slot; llama.cpp lowers it to what the model was trained for
# owner/repo:file.gguf; the file may be in a folder.
ON_HUB = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[\w./-]+\.gguf)")

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    path: Path
    context_per_slot: int


def chat_model(chosen: str, *, root: Path, folder: Path, report: Report) -> ModelFile:
    """Return the chosen chat model, or the demo model of the repository.

    Raises:
        StartError: the file is missing, not a complete GGUF file, or cannot be downloaded.
    """
    if chosen:
        path = _resolve(chosen, "WORKBENCH_CHAT_MODEL", folder, report)
        return ModelFile(path=path, context_per_slot=OWN_CONTEXT)
    path = root / DEMO_MODEL
    check_gguf(path, "WORKBENCH_CHAT_MODEL")
    return ModelFile(path=path, context_per_slot=DEMO_CONTEXT)


def embed_model(chosen: str, *, folder: Path, report: Report) -> ModelFile:
    """Return the chosen embedding model, or the one converted from all-MiniLM-L6-v2.

    Raises:
        StartError: the file is missing, not a complete GGUF file, or cannot be downloaded.
    """
    if chosen:
        path = _resolve(chosen, "WORKBENCH_EMBED_MODEL", folder, report)
    else:
        path = embedding_model.prepare(folder, report)
    return ModelFile(path=path, context_per_slot=DEMO_CONTEXT)


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


def _resolve(chosen: str, setting: str, folder: Path, report: Report) -> Path:
    path = Path(chosen).expanduser().absolute()
    on_hub = ON_HUB.fullmatch(chosen)
    if on_hub and not path.exists():
        path = _fetch(on_hub["repo"], on_hub["file"], setting, folder, report)
    check_gguf(path, setting)
    return path


def _fetch(repo: str, file: str, setting: str, folder: Path, report: Report) -> Path:
    target = folder / repo.replace("/", "--")
    if (target / file).is_file():  # complete: an unfinished download has another name
        return target / file
    report(f"Downloading {repo}:{file} from Hugging Face (first start only)…")
    try:
        _download(repo, file, target)
    except StartError:
        raise
    except Exception as error:
        raise StartError(f"{setting}: {_download_error(repo, file, target, error)}") from error
    return target / file


def _download(repo: str, file: str, target: Path) -> None:
    # The library reads this at its import. Chunks belong in the data folder, as all other files.
    os.environ.setdefault("HF_XET_CACHE", str(target.parent / ".xet"))
    import huggingface_hub  # here: the import takes half a second

    endpoint = os.environ.get("HF_ENDPOINT") or None
    _check_space(huggingface_hub.hf_hub_url(repo, file, endpoint=endpoint), target)
    # The library shows a progress bar.
    huggingface_hub.hf_hub_download(repo, file, local_dir=target, endpoint=endpoint)


def _check_space(url: str, target: Path) -> None:
    import huggingface_hub

    size = huggingface_hub.get_hf_file_metadata(url).size or 0
    target.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target).free
    if size > free:
        raise OSError(
            errno.ENOSPC, f"it needs {_gigabytes(size)}, but only {_gigabytes(free)} is free"
        )


def _download_error(repo: str, file: str, target: Path, error: Exception) -> str:
    """Return one sentence about a failed download."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return f"{repo} is gated. Accept its terms on Hugging Face and set HF_TOKEN to your token."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"Repository {repo} not found on Hugging Face. If it is private, set HF_TOKEN."
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"The repository {repo} has no file {file}."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"Not enough space in {target} for {file}: {error.strerror}."
    if isinstance(error, PermissionError):
        return f"{target} cannot be written to: {error.strerror}."
    if isinstance(error, errors.HfHubHTTPError):
        return f"Hugging Face answered with status {error.response.status_code} for {repo}:{file}."
    return (
        f"{repo}:{file} could not be downloaded ({_first_line(error)})."
        " Connect to the internet for the first start, or set a local GGUF file."
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
