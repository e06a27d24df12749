"""`scripts/setup` and `scripts/chromium`, up to where they would install something."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the scripts, and a PATH with little more than a shell."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "env", "id"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    (tmp_path / "requirements.txt").write_text("Django==5.2.19\n")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/exports.txt").write_text("onnx==1.23.2\n")
    return tmp_path


def program(machine: Path, name: str, script: str) -> None:
    path = machine / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)


def run(machine: Path, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [machine / "scripts" / command[0], *command[1:]],
        env={"PATH": str(machine / "bin"), "HOME": str(machine)} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_no_python(machine: Path) -> None:
    ended = run(machine, "setup", "run")

    assert ended.returncode == 1
    assert ended.stderr.startswith("Python 3.11 or newer is needed and was not found: install it")
    assert len(ended.stderr.splitlines()) == 1


def test_an_old_python(machine: Path) -> None:
    program(machine, "python3", "exit 1")  # it answers "too old" to the question for its version

    assert "Python 3.11 or newer is needed" in run(machine, "setup", "run").stderr


def test_a_python_without_venv(machine: Path) -> None:
    program(machine, "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    ended = run(machine, "setup", "run")

    assert ended.returncode == 1
    assert "This Python (python3) has no venv module: install it" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def fake_venv(machine: Path) -> None:
    """Its Python has a version, and pip writes down what it refreshed for."""
    (machine / ".venv" / "bin").mkdir(parents=True)
    python = machine / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -VV ] && echo Python 3.11 || echo "$@" >> pip.log\n')
    python.chmod(0o700)


def test_setup_installs_only_changed_requirements(machine: Path) -> None:
    fake_venv(machine)

    assert "Installing requirements.txt" in run(machine, "setup", "run").stderr
    assert run(machine, "setup", "run").stderr == ""
    (machine / "requirements.txt").write_text("Django==5.2.20\n")
    assert "Installing requirements.txt" in run(machine, "setup", "run").stderr
    asked = (machine / "pip.log").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in asked] == [
        "requirements.txt",
        "requirements/exports.txt",
        "requirements.txt",
    ]
    assert all("--require-hashes" in line for line in asked)


def test_an_export_that_cannot_be_installed_does_not_stop_a_start(machine: Path) -> None:
    fake_venv(machine)
    python = machine / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\ncase "$*" in *exports*) exit 1;; -VV) echo Python 3.11;; esac\n')

    ended = run(machine, "setup", "run")

    assert ended.returncode == 0
    assert "Classifiers cannot be exported to ONNX" in ended.stderr
    assert "Installing requirements/exports.txt" in run(machine, "setup", "run").stderr, "again"


def test_the_tests_need_more(machine: Path) -> None:
    fake_venv(machine)
    (machine / "requirements/dev.txt").write_text("pytest==9.2.0\n")

    assert "Installing requirements/dev.txt" in run(machine, "setup", "test").stderr
    assert run(machine, "setup", "test").stderr == ""
    assert run(machine, "setup", "run").stderr == "", "what the tests need includes it"


def test_the_chromium_that_is_there(machine: Path) -> None:
    program(machine, "chromium-browser", "exit 1")  # Ubuntu's, which asks for a snap
    program(machine, "google-chrome", "echo Google Chrome 143")

    assert run(machine, "chromium").stdout.strip() == str(machine / "bin" / "google-chrome")


def test_the_chromium_that_was_named(machine: Path) -> None:
    program(machine, "chromium", "echo Chromium 143")
    program(machine, "my-chromium", "echo Chromium 144")
    named = str(machine / "bin" / "my-chromium")

    assert run(machine, "chromium", WORKBENCH_CHROMIUM=named).stdout.strip() == named


def test_without_any_playwright_brings_its_own(machine: Path) -> None:
    fake_venv(machine)
    ended = run(machine, "chromium")

    assert ended.returncode == 0
    assert ended.stdout == ""
    assert (machine / "pip.log").read_text() == "-m playwright install chromium\n"


@pytest.mark.parametrize(
    "script",
    [
        "scripts/setup",
        "scripts/chromium",
        "scripts/lock",
        "scripts/test-postgres",
        "scripts/test-pythons",
        ".ci/run",
    ],
)
def test_setup_is_executable(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
