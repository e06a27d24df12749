"""A data folder of an earlier version starts, keeps every row and shows every page."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db.migrations import RemoveField, RenameField, RenameModel
from django.db.migrations.loader import MigrationLoader
from pytest_django import Settings

from tests.stack import Stack
from tests.upgrade.folders import POSTGRES, VERSIONS, restored

# What a field's rows became, where they are no longer in it.
TO_TASKS = ("attempts", "cancel_requested", "done", "lease", "lease_until", "total", "woken")
OF_IMPORTS = ("attempts", "cancelled", "done_rows", "done_share", "error", "lease", "lease_until")
MOVED_ELSEWHERE: dict[str, str] = {
    **{
        f"classifiers_{table}.{column}": "work_task"
        for table in ("run", "fileprediction")
        for column in TO_TASKS
    },
    **{
        f"datasets_upload.{column}": "work_task"
        for column in (*OF_IMPORTS, "plan", "started", "state", "woken")
    },
    "datasets_bulkchange": "work_task",
}
# Written anew by the migration or the first page.
CHANGES: set[str] = set()


@dataclass
class Upgrade:
    """What a database held before and after, and what its pages answered."""

    before: dict[str, Any]
    after: dict[str, Any]
    pages: dict[str, dict[str, tuple[int, str]]]


@pytest.fixture(scope="module", params=VERSIONS)
def upgrade(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgrade]:
    with restored(request.param, tmp_path_factory.mktemp(request.param)) as folder:
        inspect = ("-m", "tests.upgrade.inspect_database")
        before = json.loads(folder.run(*inspect))
        folder.run("manage.py", "migrate", "--verbosity", "0")
        after = json.loads(folder.run(*inspect))
        pages = json.loads(folder.run("-m", "tests.upgrade.open_pages"))
        yield Upgrade(before, after, pages)


@pytest.fixture(scope="module")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with restored("", tmp_path_factory.mktemp("new")) as folder:
        folder.run("manage.py", "migrate", "--verbosity", "0")
        yield json.loads(folder.run("-m", "tests.upgrade.inspect_database"))


def renames() -> tuple[dict[str, str], dict[str, dict[str, str | None]]]:
    """What our migrations renamed: tables, and columns of each; None is a removed column."""
    tables: dict[str, str] = {}
    columns: dict[str, dict[str, str | None]] = {}
    loader = MigrationLoader(None)
    for (label, _), migration in sorted(loader.disk_migrations.items()):
        for operation in migration.operations:
            if isinstance(operation, RenameModel):
                tables[f"{label}_{operation.old_name_lower}"] = (
                    f"{label}_{operation.new_name_lower}"
                )
            elif isinstance(operation, RenameField | RemoveField):
                table = columns.setdefault(f"{label}_{operation.model_name_lower}", {})
                if isinstance(operation, RemoveField):
                    table[operation.name] = None
                else:
                    table[operation.old_name] = operation.new_name
    return tables, columns


def test_every_row_is_kept(upgrade: Upgrade, settings: Settings) -> None:
    settings.MIGRATION_MODULES = {}  # which the tests' own database does without
    tables, columns = renames()
    for table, rows in upgrade.before["rows"].items():
        name = tables.get(table, table)
        if table in MOVED_ELSEWHERE:
            continue
        kept = upgrade.after["rows"][name]
        changed = columns.get(table, {}) | columns.get(name, {})
        assert len(kept) == len(rows), table
        key = "id" if "id" in (rows or [{"id": 0}])[0] else None
        by_key = {row[key]: row for row in kept} if key else {}
        for number, row in enumerate(rows):
            now = by_key[row[key]] if key else kept[number]
            for column, value in row.items():
                stem = column.removesuffix("_id")
                new = changed.get(column, changed.get(stem, column))
                while new in changed:  # renamed once more, or removed under its new name
                    new = changed[new]
                place = f"{table}.{column}"
                if new is None:
                    assert place in MOVED_ELSEWHERE, place
                    continue
                if column != stem and stem in changed and column not in changed:
                    new = f"{new}_id"
                if place not in CHANGES:
                    assert now[new] == value, place


def test_the_schema_is_that_of_a_new_database(
    upgrade: Upgrade, new_database: dict[str, Any]
) -> None:
    assert upgrade.after["columns"] == new_database["columns"]
    assert upgrade.after["indexes"] == new_database["indexes"]


def test_every_page_opens(upgrade: Upgrade) -> None:
    assert len(upgrade.pages["alice"]) > 60
    for person, pages in upgrade.pages.items():
        broken = {address: status for address, (status, _) in pages.items() if status >= 500}
        assert broken == {}, person


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("/chat/", "Kettles"),
        ("/datasets/", "Topics"),
        ("/classify/", "Topics"),
        ("/generate/", "Reviews"),
        ("/generate/", "paused"),
        ("/servers/", "Swap"),
        ("/tools/", "Kettle"),
        ("/settings/", "nightly"),
        ("/api/v1/conversations", "Kettles"),
        ("/api/v1/jobs", "Reviews"),
        ("/api/v1/datasets", "Topics"),
    ],
)
def test_what_was_there_is_shown(upgrade: Upgrade, address: str, text: str) -> None:
    status, body = upgrade.pages["alice"][address]
    assert status == 200
    assert text in body


def test_objects_have_their_pages(upgrade: Upgrade) -> None:
    """Each room's page of one object answers with it, not with an error page."""
    rooms = {"chat", "datasets", "classify", "generate"}
    shown = {
        address.split("/")[1]
        for address, (status, _) in upgrade.pages["alice"].items()
        if status == 200 and address.count("/") == 3 and address.split("/")[2].isdigit()
    }
    assert rooms <= shown


@pytest.mark.skipif(bool(POSTGRES), reason="one whole start is enough, and SQLite is the default")
def test_the_whole_workbench_starts_on_it(tmp_path: Path) -> None:
    with restored(VERSIONS[0], tmp_path):
        with Stack(data=tmp_path) as stack:
            assert stack.url
        assert "Traceback" not in stack.log()
