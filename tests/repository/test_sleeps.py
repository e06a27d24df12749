"""Tests wait for states (tests/waiting.py), never for a time in which it should have come."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[1]


def unexplained_sleeps(path: Path) -> list[str]:
    """The calls of `sleep` and `wait_for_timeout` without a comment on their line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    calls = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call)]
    names = [(getattr(call.func, "attr", getattr(call.func, "id", "")), call) for call in calls]
    numbers = [call.lineno for name, call in names if name in {"sleep", "wait_for_timeout"}]
    return [f"{path}:{number}" for number in numbers if "  # " not in lines[number - 1]]


def test_a_sleep_says_why_no_state_can_be_waited_for() -> None:
    paths = [path for path in FOLDER.rglob("*.py") if path.name != "waiting.py"]
    found = [place for path in paths for place in unexplained_sleeps(path)]
    assert not found, "Wait for a state, or give the reason on the line:\n" + "\n".join(found)
