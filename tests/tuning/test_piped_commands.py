"""Commands whose reader has read enough: `manage.py plan ... | head`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import load_command_class

from apps.core.management.piped_command import CLOSED, PipedCommand

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["plan", "doctor", "sweep"])
def test_commands_that_print_reports_can_be_piped(name: str) -> None:
    assert isinstance(load_command_class("apps.tuning", name), PipedCommand)


def test_a_command_ends_quietly_when_its_reader_is_gone() -> None:
    command = [sys.executable, "manage.py", "plan", "--preset", "16 GB"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == CLOSED == 128 + signal.SIGPIPE
