"""What is installed is pinned, all of it, by version and hash."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {
    "requirements.txt": "run.in",
    "requirements/server.txt": "server.in",
    "requirements/exports.txt": "exports.in",
    "requirements/dev.txt": "dev.in",
}
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[\w,]+\])?==([^\s;\\]+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    return {re.sub(r"[._-]+", "-", name).lower(): version for name, version in PIN.findall(text)}


def asked_for(name: str) -> dict[str, str]:
    """The pins of an .in file and of those that it includes."""
    text = (ROOT / "requirements" / name).read_text()
    found = pins(text)
    for included in re.findall(r"^-r (\S+)", text, re.MULTILINE):
        found |= asked_for(included)
    return found


@pytest.mark.parametrize(("lock", "source"), LOCKS.items())
def test_a_lock_is_that_of_its_source(lock: str, source: str) -> None:
    """`make lock` was run after the last change."""
    wanted = asked_for(source)
    locked = pins((ROOT / lock).read_text())
    assert wanted
    assert {name: locked.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_has_a_hash_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def test_all_locks_agree() -> None:
    everything = pins((ROOT / "requirements/dev.txt").read_text())
    for lock in LOCKS:
        assert pins((ROOT / lock).read_text()).items() <= everything.items(), lock
