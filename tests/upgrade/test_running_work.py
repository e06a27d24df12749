"""Work of an earlier version that was cut off by the upgrade: it goes on, or says why it ended."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.upgrade.folders import restored
from tests.upgrade.running_work import ROWS

MODULE = ("-m", "tests.upgrade.running_work")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with restored("3e38b68", tmp_path_factory.mktemp("running")) as folder:
        folder.run(*MODULE, "leave")
        folder.run("manage.py", "migrate", "--verbosity", "0")
        yield json.loads(folder.run(*MODULE, "finish").splitlines()[-1])


def test_the_first_sweep_finds_all_of_it(found: dict[str, Any]) -> None:
    assert found["announced"] == 7
    assert found["active"] == 0


@pytest.mark.parametrize("name", ["Running", "Queued"])
def test_an_import_goes_on_and_has_each_row_once(found: dict[str, Any], name: str) -> None:
    assert found["uploads"][f"{name}.csv"] == ["done", ""]
    assert found["datasets"][name] == ["ready", ROWS, ROWS, ["label"]]


def test_an_import_without_its_file_ends_with_a_sentence(found: dict[str, Any]) -> None:
    state, error = found["uploads"]["Without its file.csv"]
    assert state == "failed"
    assert error.startswith("Something went wrong. Nothing was imported.")
    assert "Without its file" not in found["datasets"]


def test_a_cancelled_import_leaves_nothing(found: dict[str, Any]) -> None:
    assert "Cancelled.csv" not in found["uploads"]


def test_a_failed_import_keeps_its_reason(found: dict[str, Any]) -> None:
    assert found["uploads"]["Failed.csv"] == ["failed", "No memory left."]


def test_half_datasets_are_removed(found: dict[str, Any]) -> None:
    assert "Deleted" not in found["datasets"]
    assert "Cut off" not in found["datasets"]


def test_a_change_of_many_rows_is_made_once(found: dict[str, Any]) -> None:
    assert found["datasets"]["Changed"] == ["ready", ROWS, ROWS, ["b"]]
