"""Data flows one way: which room may import which."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

APPS = Path(__file__).parent.parent / "apps"

MAY_IMPORT = {
    "runtime": set(),
    "core": {"runtime"},
    "files": {"core", "runtime"},
    "work": {"core", "runtime"},
    "similarity": set(),
    "llm": {"core", "runtime", "servers"},
    "servers": {"core", "runtime", "llm"},
    "datasets": {"core", "files", "runtime", "work"},
    "mcp": {"core", "runtime"},
    "embeddings": {"core", "llm", "servers", "runtime", "similarity"},
    "batch": {"core", "llm", "servers", "runtime"},
    "chat": {"core", "llm", "servers", "embeddings", "batch", "datasets", "files", "runtime"},
    "classifiers": {
        *("core", "llm", "servers", "embeddings", "batch", "datasets", "files", "runtime"),
        *("similarity", "work"),
    },
    "generation": {
        *("core", "llm", "servers", "embeddings", "batch", "datasets", "files", "runtime"),
        "similarity",
    },
    "embedded": {"core", "llm", "servers", "runtime"},
}

PURE = [
    "llm/events.py",
    "llm/errors.py",
    "llm/endpoint.py",
    "chat/prompt/context.py",
    "chat/prompt/cache_loss.py",
    "servers/pages/slot_view.py",
    "servers/pages/status_text.py",
    "files/readers/",
    "datasets/rows/splitting.py",
    "classifiers/training/estimator.py",
    "classifiers/evaluation/metrics.py",
    "generation/recipe/parse.py",
    "classifiers/evaluation/calibration.py",
    "classifiers/evaluation/familiarity.py",
    "classifiers/evaluation/thresholds.py",
    "classifiers/evaluation/calibration_error.py",
    "classifiers/evaluation/confidence_interval.py",
    "similarity/cosine.py",
    "classifiers/training/label_errors.py",
    "classifiers/evaluation/mcnemar.py",
    "classifiers/evaluation/dataset_value.py",
    "classifiers/metric_text.py",
    "classifiers/transfer/convert.py",
    "classifiers/evaluation/row_results.py",
    "classifiers/training/folds.py",
    "classifiers/prediction/predictor.py",
    "embeddings/arrays.py",
    "generation/recipe/columns/columns.py",
    "generation/recipe/recipe.py",
    "generation/rows/samplers.py",
    "generation/rows/steps.py",
    "generation/recipe/columns/checks.py",
    "generation/recipe/columns/seeds.py",
    "similarity/minhash.py",
    "generation/review/diversity.py",
    "generation/recipe/columns/parse_column.py",
    "generation/recipe/columns/parse_fields.py",
    "generation/recipe/columns/sampled.py",
    "generation/recipe/columns/written.py",
    "llm/stream/sse_reader.py",
    "servers/facts/capacity.py",
    "servers/facts/command_line.py",
    "servers/facts/server_facts.py",
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
        ("openai", ["llm/sdk.py"]),
        (
            "httpx2",
            [
                *("llm/addresses.py", "llm/certificates.py", "llm/client.py"),
                *("llm/response_reader.py", "llm/sdk.py"),
                *("core/outgoing.py", "chat/tools/fetching.py", "mcp/connection.py"),
            ],
        ),
        ("mcp", ["mcp/connection.py"]),
        (
            "sklearn",
            [
                *(f"classifiers/evaluation/{name}.py" for name in ("map_projection", "metrics")),
                *(f"classifiers/training/{name}.py" for name in ("estimator", "folds")),
            ],
        ),
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


PAGES = {"views", "api", "urls", "forms", "apps", "pages"}


def is_of_pages(module: str) -> bool:
    return any(part.split("_")[-1] in PAGES for part in module.split("."))


def test_services_know_nothing_of_pages() -> None:
    """Views and routes call services, never the other way round."""
    wrong = [
        f"{path.relative_to(APPS)} imports {name}"
        for room in set(MAY_IMPORT) - {"core", "runtime"}
        for path in modules(room)
        if not is_of_pages(str(path.relative_to(APPS).with_suffix("")).replace("/", "."))
        for name in imports(path)
        if name.startswith("apps.") and name.split(".")[-1].split("_")[-1] in {"views", "api"}
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
