"""The progress of an embedded model server's download and start, from its process to the pages.

A small file in the data folder, named by the port at which the server will answer. Redis would be
one more thing for that process to wait for.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from apps.runtime.atomic_file import write_atomically

MAX_CHARACTERS = 1000  # of each text
MAX_BYTES = 16_384


@dataclass(frozen=True, kw_only=True)
class DownloadProgress:
    model: str
    done: int = 0
    """Bytes."""
    total: int | None = None
    """Bytes; None while it is not known."""
    error: str = ""
    """The reason why the server cannot start, as sentences; empty while all goes well."""

    started_at: float = 0.0
    """When the server's own process started, in seconds since 1970; 0 before that."""

    @property
    def share(self) -> float | None:
        """The share in whole hundredths, rounded down; None while the size is not known."""
        return 100 * self.done // self.total / 100 if self.total else None

    def __str__(self) -> str:
        """A line such as "Downloading alice/models:qwen.gguf: 43% (1.2 of 2.8 GB)"."""
        if self.started_at:
            return f"Starting {self.model}"
        if self.share is None or not self.total:
            return f"Downloading {self.model}"
        unit, size = ("GB", 1e9) if self.total >= 1e9 else ("MB", 1e6)
        sizes = f"{self.done / size:.1f} of {self.total / size:.1f} {unit}"
        return f"Downloading {self.model}: {self.share:.0%} ({sizes})"


def progress_file(data: Path, port: int) -> Path:
    """The file of the server at this port of this machine."""
    return data / "downloads" / f"{port}.json"


def write_progress(path: Path, progress: DownloadProgress) -> None:
    """Write the progress.

    Raises:
        OSError: the file cannot be written.
    """
    bounded = replace(
        progress, model=progress.model[:MAX_CHARACTERS], error=progress.error[:MAX_CHARACTERS]
    )
    write_atomically(path, json.dumps(asdict(bounded)).encode())


def read_progress(path: Path) -> DownloadProgress | None:
    """Return the progress; None if nothing is downloaded, or the file cannot be read."""
    try:
        with path.open("rb") as file:
            return DownloadProgress(**json.loads(file.read(MAX_BYTES)))
    except (OSError, ValueError, TypeError):
        return None
