"""Whether a process that named itself is still there."""

import subprocess
import sys

from apps.runtime import process_identity

SAY = "from apps.runtime import process_identity as p; print(p.name(), flush=True); input()"


def test_a_process_is_there_until_it_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert name not in {"", process_identity.name()}
        assert not process_identity.is_gone(name)
        other.kill()
        other.wait()
        assert process_identity.is_gone(name)


def test_one_that_cannot_be_seen_from_here_is_not_gone() -> None:
    place, number, started = process_identity.name().rsplit("/", 2)
    assert not process_identity.is_gone(process_identity.name())
    assert not process_identity.is_gone(f"elsewhere/{number}/{started}")
    assert not process_identity.is_gone("1")
    assert process_identity.is_gone(
        f"{place}/{number}/0{started}"
    )  # another process got its number
