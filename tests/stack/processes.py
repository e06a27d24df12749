"""The processes that were started for a data folder."""

from pathlib import Path

import psutil


def processes_of(data: Path) -> list[psutil.Process]:
    """Every process that was started for this data folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and _belongs(process, data):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _belongs(process: psutil.Process, data: Path) -> bool:
    # By its environment; Redis writes its title over that, but works inside the folder.
    return process.environ().get("WORKBENCH_DATA") == str(data) or Path(
        process.cwd()
    ).is_relative_to(data)


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue
