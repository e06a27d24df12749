"""Downloads a file from Hugging Face, and resumes where an earlier download ended.

huggingface_hub's `hf_hub_download` begins again: each call writes to a file with a new name, and a
killed one leaves its file behind.
"""

import errno
import functools
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from apps.embedded.errors import StartError
from apps.runtime.download_progress import DownloadProgress

# owner/repo:file.gguf; the file may be in a folder.
ON_HUB = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+):(?P<file>[\w./-]+\.gguf)")
TELL_SECONDS = 0.5

Tell = Callable[[DownloadProgress], None]


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file of a repository on Hugging Face."""

    repo: str
    file: str

    @classmethod
    def parse(cls, chosen: str) -> Self | None:
        found = ON_HUB.fullmatch(chosen)
        return cls(**found.groupdict()) if found else None

    def __str__(self) -> str:
        return f"{self.repo}:{self.file}"

    def repo_folder(self, models: Path) -> Path:
        """The folder of the repository in that of the downloaded models."""
        return models / self.repo.replace("/", "--")

    def path(self, models: Path) -> Path:
        """Its place among the downloaded models. What is there is complete."""
        return self.repo_folder(models) / self.file


def download(wanted: HubFile, models: Path, setting: str, tell: Tell) -> Path:
    """Return the path of the file; download what is missing of it.

    Raises:
        StartError: it cannot be downloaded; the sentences say why, and what to do.
    """
    target = wanted.path(models)
    if not target.is_file():
        try:
            _download(wanted, models, tell)
        except Exception as error:
            raise StartError(f"{setting}: {_download_error(wanted, target, error)}") from error
    return target


def _download(wanted: HubFile, models: Path, tell: Tell) -> None:
    # The library reads this at its import. Chunks belong in the data folder, as all other files.
    os.environ.setdefault("HF_XET_CACHE", str(models / ".xet"))
    import huggingface_hub  # here: the import takes half a second
    from huggingface_hub import constants

    endpoint = os.environ.get("HF_ENDPOINT") or None
    repo, file, target = wanted.repo, wanted.file, wanted.path(models)
    url = huggingface_hub.hf_hub_url(repo, file, endpoint=endpoint)
    metadata = huggingface_hub.get_hf_file_metadata(url, endpoint=endpoint)
    size = metadata.size
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial_file(target, metadata.etag or "")
    have = partial.stat().st_size if partial.exists() else 0
    _check_space((size or 0) - have, target.parent)
    tell(DownloadProgress(model=str(wanted), done=have, total=size))
    if size is not None and size > constants.MAX_HTTP_DOWNLOAD_SIZE:  # not by HTTP alone
        folder = wanted.repo_folder(models)
        huggingface_hub.hf_hub_download(repo, file, local_dir=folder, endpoint=endpoint)
        return
    _fetch_rest(url, partial, size, functools.partial(Bar, str(wanted), tell))
    partial.replace(target)


def _fetch_rest(url: str, partial: Path, size: int | None, bar: Callable[..., "Bar"]) -> None:
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # it is documented

    with partial.open("ab") as file:
        if size is not None and file.tell() > size:
            file.truncate(0)
        http_get(
            url,
            file,
            resume_size=file.tell(),
            # Compressed, the parts would have other sizes.
            headers={**build_hf_headers(), "Accept-Encoding": "identity"},
            expected_size=size,
            tqdm_class=bar,  # type: ignore[arg-type]  # any callable will do
        )
        file.flush()
        os.fsync(file.fileno())


def _partial_file(target: Path, etag: str) -> Path:
    """The file of an unfinished download; those of other versions of the file are deleted."""
    version = hashlib.sha256(etag.encode()).hexdigest()[:16]
    partial = target.with_name(f".{target.name}.{version}.part")
    for other in target.parent.glob(f".{target.name}.*.part"):
        if other != partial:
            other.unlink()
    return partial


class Bar:
    """What huggingface_hub needs of a tqdm bar."""

    def __init__(
        self, model: str, tell: Tell, *, total: int | None, initial: int, **_: object
    ) -> None:
        self._tell = tell
        self._progress = DownloadProgress(model=model, done=initial, total=total)
        self._told = -TELL_SECONDS

    def update(self, size: int) -> None:
        self._progress = replace(self._progress, done=self._progress.done + size)
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            self._tell(self._progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last progress."""


def _check_space(size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            errno.ENOSPC, f"it needs {_gigabytes(size)}, but only {_gigabytes(free)} is free"
        )


def _download_error(wanted: HubFile, target: Path, error: Exception) -> str:
    """Return sentences about a failed download."""
    from huggingface_hub import errors

    repo, folder = wanted.repo, target.parent
    if isinstance(error, errors.GatedRepoError):
        return f"{repo} is gated. Accept its terms on Hugging Face and set HF_TOKEN to your token."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"Repository {repo} not found on Hugging Face. If it is private, set HF_TOKEN."
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"The repository {repo} has no file {wanted.file}."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"Not enough space in {folder} for {wanted.file}: {error.strerror}."
    if isinstance(error, PermissionError):
        return f"{folder} cannot be written to: {error.strerror}."
    if isinstance(error, errors.HfHubHTTPError):
        return f"Hugging Face answered with status {error.response.status_code} for {wanted}."
    return (
        f"{wanted} could not be downloaded ({_first_line(error)})."
        " Connect to the internet for the first start, or set a local GGUF file."
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
