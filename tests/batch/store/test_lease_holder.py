"""A process that has ended is recognised, and only that one."""

import os
import subprocess
import sys

import pytest

from apps.batch.store import lease_holder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def test_this_process_is_there() -> None:
    assert lease_holder.myself()
    assert not lease_holder.is_gone(lease_holder.myself())


def test_a_process_that_has_ended_is_gone_also_before_anybody_asked_for_it() -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    place, _, began = lease_holder.myself().rsplit("/", 2)
    theirs = f"{place}/{process.pid}/{lease_holder._began(process.pid)}"
    assert not lease_holder.is_gone(theirs)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert lease_holder.is_gone(theirs)
    process.communicate()
    assert lease_holder.is_gone(theirs)
    # Its number was given to another one.
    assert lease_holder.is_gone(f"{place}/{os.getpid()}/{int(began) - 1}")


@pytest.mark.parametrize("holder", ["", "another-boot/pid:[4026531836]/1/1"])
def test_of_others_nothing_is_known(holder: str) -> None:
    assert not lease_holder.is_gone(holder)
