"""Data flows one way: which room may import which."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

APPS = Path(__file__).parent.parent / "apps"

MAY_IMPORT = {
    "core": set(),
    "llm": {"core"},
    "datasets": {"core"},
    "mcp": {"core"},
    "embeddings": {"core", "llm"},
    "batch": {"core", "llm"},
    "chat": {"core", "llm", "embeddings", "batch", "datasets"},
    "classifiers": {"core", "llm", "embeddings", "batch", "datasets"},
    "generation": {"core", "llm", "embeddings", "batch", "datasets"},
    "embedded": {"core", "llm"},
}

PURE = [
    "llm/events.py",
    "llm/errors.py",
    "llm/endpoint.py",
    "chat/context.py",
    "chat/prefix.py",
    "llm/boxes.py",
    "llm/wording.py",
    "datasets/formats/",
    "datasets/splitting.py",
    "classifiers/trainer.py",
    "classifiers/evaluation.py",
    "generation/recipe.py",
    "classifiers/calibration.py",
    "classifiers/familiarity.py",
    "classifiers/gates.py",
    "classifiers/leaks.py",
    "embeddings/nearest.py",
    "classifiers/improving.py",
    "classifiers/comparing.py",
    "classifiers/worth.py",
    "classifiers/wording.py",
    "classifiers/converting.py",
    "classifiers/evidence.py",
    "classifiers/splits.py",
    "classifiers/predictor.py",
    "embeddings/arrays.py",
    "generation/columns.py",
    "generation/plan.py",
    "generation/draws.py",
    "generation/writing.py",
    "generation/checks.py",
    "generation/seeds.py",
    "generation/duplicates.py",
    "generation/diversity.py",
    "generation/column_forms.py",
    "generation/column_parts.py",
    "generation/columns_drawn.py",
    "generation/columns_written.py",
    "llm/chunks.py",
    "llm/capacity.py",
    "llm/command_line.py",
    "llm/facts.py",
    "mcp/results.py",
]


def modules(room: str) -> list[Path]:
    return [path for path in (APPS / room).rglob("*.py") if "migrations" not in path.parts]


@cache
def imports(path: Path) -> set[str]:
    """Every module a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_room_is_listed() -> None:
    rooms = {path.name for path in APPS.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_lies_below(room: str) -> None:
    allowed = MAY_IMPORT[room] | {room}
    wrong = [
        f"{path.relative_to(APPS)} imports {name}"
        for path in modules(room)
        for name in imports(path)
        if name.startswith("apps.") and name.split(".")[1] not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_know_nothing_of_django(name: str) -> None:
    path = APPS / name
    for module in path.rglob("*.py") if path.is_dir() else [path]:
        assert not [found for found in imports(module) if found.split(".")[0] == "django"]


@pytest.mark.parametrize(
    ("library", "room"),
    [
        ("openai", ["llm/client.py"]),
        (
            "httpx2",
            [
                *("llm/addresses.py", "llm/certificates.py", "llm/client.py", "llm/transport.py"),
                "mcp/connecting.py",
            ],
        ),
        ("mcp", ["mcp/connecting.py"]),
        ("sklearn", ["classifiers/trainer.py"]),
    ],
)
def test_an_outside_thing_has_one_room(library: str, room: list[str]) -> None:
    users = {
        str(path.relative_to(APPS))
        for name in MAY_IMPORT
        for path in modules(name)
        if library in {found.split(".")[0] for found in imports(path)}
    }
    assert users == set(room)


def last_word(name: str) -> str:
    """A room with many pages has several such modules: `branch_views` is one of them."""
    return name.split("_")[-1]


def test_services_know_nothing_of_pages() -> None:
    """Views and routes call services, never the other way round."""
    wrong = [
        f"{path.relative_to(APPS)} imports {name}"
        for room in MAY_IMPORT
        for path in modules(room)
        if last_word(path.stem) not in {"views", "api", "urls", "forms", "apps"} and room != "core"
        for name in imports(path)
        if name.startswith("apps.") and last_word(name.split(".")[-1]) in {"views", "api"}
    ]
    assert wrong == []


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
