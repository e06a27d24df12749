"""Reading in a process with limits: what it prints, and every way in which it may end."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from apps.core import sandbox

LIMITS = sandbox.Limits(cpu_seconds=10, memory_bytes=512 * 1024**2, seconds=20, output_bytes=1000)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that a test writes."""
    monkeypatch.setattr(sandbox, "KEPT_VARIABLES", (*sandbox.KEPT_VARIABLES, "PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "stranger.py"


def run(module: Path, source: str, limits: sandbox.Limits = LIMITS, *arguments: str) -> bytes:
    module.write_text(source)
    return sandbox.output("stranger", *arguments, limits=limits)


def test_sandbox_returns_printed_text(module: Path) -> None:
    assert run(module, "import sys; print(sys.argv[1:])", LIMITS, "a", "b") == b"['a', 'b']\n"


def test_sandbox_reads_a_given_file(module: Path) -> None:
    module.write_text("import sys; print(sys.stdin.read().upper())")
    with tempfile.TemporaryFile() as file:
        file.write(b"kettle")
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        assert sandbox.output("stranger", limits=LIMITS, file=file) == b"KETTLE\n"


@pytest.mark.parametrize(
    ("source", "limits"),
    [
        ("while True: pass", replace(LIMITS, cpu_seconds=1)),
        ("import time; time.sleep(60)", replace(LIMITS, seconds=0.3)),
        ("while True: print('x' * 1000)", LIMITS),
        ("import os; os.kill(os.getpid(), 9)", LIMITS),
    ],
    ids=["CPU", "time", "output", "killed"],
)
def test_what_takes_too_much_is_ended(module: Path, source: str, limits: sandbox.Limits) -> None:
    with pytest.raises(sandbox.Exceeded):
        run(module, source, limits)


def test_memory_has_an_end(module: Path) -> None:
    with pytest.raises(sandbox.Failed):
        run(module, "x = bytearray(4 * 1024**3)")


def test_sandbox_reports_the_exit_code(module: Path) -> None:
    with pytest.raises(sandbox.Failed) as failed:
        run(module, "import sys; sys.exit(3)")
    assert failed.value.code == 3


def test_no_secret_is_handed_on(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "kettle")
    assert b"SECRET_KEY" not in run(module, "import os; print(list(os.environ))")


def test_lines_come_as_they_are_printed_and_may_be_left(module: Path) -> None:
    module.write_text("import itertools\nfor n in itertools.count(): print(n, flush=True)")
    lines = sandbox.lines("stranger", limits=LIMITS)
    assert [next(lines), next(lines)] == [b"0\n", b"1\n"]
    lines.close()  # type: ignore[attr-defined]
    held = [sandbox.places.acquire(blocking=False) for _ in range(sandbox.AT_ONCE)]
    for _ in held:
        sandbox.places.release()
    assert all(held)


def test_a_line_has_an_end(module: Path) -> None:
    module.write_text("print('x' * 900)")
    with pytest.raises(sandbox.Exceeded):
        list(sandbox.lines("stranger", limits=replace(LIMITS, line_bytes=100)))


def test_only_some_run_at_once(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PATIENCE_SECONDS", 0)
    module.write_text("print('x')")
    for _ in range(sandbox.AT_ONCE):
        sandbox.places.acquire()
    try:
        with pytest.raises(sandbox.Busy, match="Try again"):
            sandbox.output("stranger", limits=LIMITS)
    finally:
        for _ in range(sandbox.AT_ONCE):
            sandbox.places.release()
