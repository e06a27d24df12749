"""Reads a configuration and the argument table of a build from files, for `manage.py plan`."""

import subprocess
import sys
from pathlib import Path

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import FlagTable, parse_help, shipped_table
from apps.tuning.importing.written import MAX_CHARACTERS

HELP_SECONDS = 30


def read_configuration(name: str) -> str:
    """Return the text of a file, or of standard input for “-”: a character more than is allowed.

    Raises:
        PlanError: it cannot be read.
    """
    try:
        if name == "-":
            return sys.stdin.read(MAX_CHARACTERS + 1)
        with Path(name).open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise PlanError(f"{name} is no text in UTF-8.") from error
    except OSError as error:
        raise PlanError(f"{name} cannot be read: {error.strerror}.") from error


def installed_table(program: str | None) -> FlagTable:
    """Ask the program for its arguments; without one, those of the tested build.

    Raises:
        PlanError: it cannot be run, or is no llama-server.
    """
    if program is None:
        return shipped_table()
    try:
        said = subprocess.run(  # noqa: S603  the person at the terminal named it
            [program, "--help"], capture_output=True, text=True, timeout=HELP_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlanError(f"{program} --help does not work: {error}.") from error
    table = parse_help(said.stdout)
    if table.find("--ctx-size") is None:
        raise PlanError(f"{program} --help does not read like that of llama-server.")
    return table
