"""What import-linter's contracts (pyproject.toml) cannot say about rooms."""

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

APPS = Path(__file__).parents[2] / "apps"
CONTRACTS = tomllib.loads((APPS.parent / "pyproject.toml").read_text())["tool"]["importlinter"]
# Read by Django, Celery or nobody: no room imports them.
BY_NAME = {"apps", "migrations", "management", "templatetags"}


@cache
def imports(path: Path) -> set[str]:
    """Every module a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module}
    return found


def protected(room: str) -> set[str]:
    """The modules of a room that its contract keeps to itself."""
    [contract] = [
        found
        for found in CONTRACTS["contracts"]
        if found.get("allowed_importers") == [f"apps.{room}"]
    ]
    return set(contract["protected_modules"])


@pytest.mark.parametrize(
    "contract", [found for found in CONTRACTS["contracts"] if ": its doors are " in found["name"]]
)
def test_what_is_no_door_is_protected(contract: dict[str, object]) -> None:
    """A new module of a room is inside until somebody names it as a door."""
    room, _, doors = str(contract["name"]).partition(": its doors are ")
    inside = {
        f"apps.{room}.{path.stem}"
        for path in (APPS / room).iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }
    allowed = {f"apps.{room}.{name}" for name in [*doors.split(", "), *BY_NAME]}
    assert inside - allowed == protected(room) - {f"apps.{room}.apps"}


def test_no_import_is_excepted() -> None:
    assert [found["name"] for found in CONTRACTS["contracts"] if "ignore_imports" in found] == []


@pytest.mark.parametrize(
    ("library", "room"),
    [
        ("openai", ["llm/transport/sdk.py"]),
        (
            "httpx2",
            [
                *("llm/addresses.py", "llm/client.py"),
                *("llm/transport/certificates.py", "llm/transport/connection.py"),
                *("llm/raw_answer.py", "llm/response_reader.py", "llm/transport/sdk.py"),
                *(
                    "core/outgoing.py",
                    "chat/tools/fetching.py",
                    "mcp/connection.py",
                    "monitoring/alerts/notify.py",
                    "tuning/hub_file.py",
                ),
            ],
        ),
        ("mcp", ["mcp/connection.py"]),
        (
            "sklearn",
            [
                *(
                    f"classifiers/evaluation/{name}.py"
                    for name in ("map_projection", "statistics/metrics")
                ),
                *(f"classifiers/training/{name}.py" for name in ("estimator", "folds")),
            ],
        ),
    ],
)
def test_an_outside_thing_has_one_room(library: str, room: list[str]) -> None:
    users = {
        str(path.relative_to(APPS))
        for path in APPS.rglob("*.py")
        if library in {found.split(".")[0] for found in imports(path)}
    }
    assert users == set(room)


def test_no_process_loads_what_only_some_use() -> None:
    """They take seconds at each start and memory ever after. `openai` is loaded by name."""
    heavy = ["sklearn", "scipy", "skops", "onnx", "pyarrow", "openpyxl", "pypdf", "openai"]
    script = (
        "import django, sys; django.setup(); import workbench.urls;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=APPS.parent
    )
    assert found.stdout.strip() == "[]"
