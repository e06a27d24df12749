"""`python -m apps.embedded.fetch_and_serve chat --port ...`: downloads models, then serves them.

The supervisor starts it instead of a llama.cpp server with missing model files, so that the
workbench runs while gigabytes arrive. After the checks it becomes that server (exec): the
supervisor sees one process. If it fails, the supervisor starts it again, and it resumes.
"""

import argparse
import contextlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from apps.embedded.errors import StartError
from apps.embedded.llama_command import command
from apps.embedded.llama_setup import chat_llama, embeddings_llama
from apps.embedded.options import from_settings
from apps.runtime.download_progress import (
    DownloadProgress,
    progress_file,
    read_progress,
    write_progress,
)

SERVERS = {"chat": chat_llama, "embeddings": embeddings_llama}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m apps.embedded.fetch_and_serve")
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()
    options = from_settings()
    file = progress_file(options.data, args.port)
    try:
        llama = SERVERS[args.server](options, port=args.port, tell=lambda p: _tell(file, p))
    except StartError as error:
        _tell(file, DownloadProgress(model=args.server, error=str(error)))
        sys.stderr.write(f"{error}\n")
        return 1
    _tell_start(file)
    argv = command(llama, options.llama_key_file)
    os.execv(argv[0], tuple(argv))  # noqa: S606 - our llama.cpp, or the program that a person installed


def _tell_start(file: Path) -> None:
    """Tell that the model starts; not again where it was started and has ended since."""
    progress = read_progress(file)
    if progress is not None and not progress.started_at:
        _tell(file, replace(progress, started_at=time.time(), error=""))


def _tell(file: Path, progress: DownloadProgress) -> None:
    with contextlib.suppress(OSError):  # the disk may be full: what cannot be saved says so itself
        write_progress(file, progress)


if __name__ == "__main__":
    sys.exit(main())
