"""A process that has ended is recognised, and only that one."""

import os
import subprocess
import sys

import pytest

from apps.runtime.process_identity import current_process_id, has_exited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
PRINT = (
    "from apps.runtime.process_identity import current_process_id;"
    "print(current_process_id(), flush=True); input()"
)


def test_current_process_id_is_of_a_living_process() -> None:
    assert current_process_id()
    assert not has_exited(current_process_id())


def test_has_exited_sees_a_killed_process_even_as_a_zombie() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PRINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        identity = process.stdout.readline().strip()
        assert identity not in {"", current_process_id()}
        assert not has_exited(identity)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert has_exited(identity)
        process.communicate()
        assert has_exited(identity)


def test_has_exited_knows_that_a_number_was_given_to_another_process() -> None:
    machine, number, started = current_process_id().rsplit("/", 2)
    assert has_exited(f"{machine}/{number}/{int(started) - 1}")


@pytest.mark.parametrize("identity", ["", "1", "/1/1", "another-boot/pid:[4026531836]/1/1"])
def test_has_exited_is_false_where_nothing_is_known(identity: str) -> None:
    assert not has_exited(identity)


def test_a_forked_process_has_an_identity_of_its_own() -> None:
    ours = current_process_id()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, current_process_id().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() not in {"", ours}
    os.waitpid(child, 0)
