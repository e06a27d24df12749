"""Near-duplicates within a dataset, found for the dataset's page."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.classifiers import near_duplicate_search, tasks
from apps.datasets import hooks, near_duplicates
from apps.datasets.models import Dataset, NearDuplicate
from apps.files import ExampleRow
from apps.servers.models import DefaultServer, Server
from apps.work import services as work
from apps.work.models import Task, TaskState
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)

TWINS = [
    ExampleRow("where is the new card that I ordered three weeks ago", "card", "train"),
    ExampleRow("where is the new card that I ordered three weeks ago?", "card", "test"),
    ExampleRow("QUITE ANOTHER THING 7 $ 8 % 9", "rate", "train"),
    ExampleRow("hello hello hello hello good day to you", "hello", "train"),
]


def searched(data: Dataset) -> dict[str, Any]:
    """The status of a search done as a worker would."""
    work.run_subject(hooks.NEAR_DUPLICATE_SEARCH, data.pk)
    data.refresh_from_db()
    return near_duplicates.search_status(data)


def test_find_stores_the_pairs(alice: User, embedding_server: Server, announced: list[int]) -> None:
    data = factories.dataset(alice, TWINS)
    assert near_duplicates.search_status(data) == {}
    assert near_duplicates.start_search(data)
    assert not near_duplicates.start_search(data)  # one is active
    assert near_duplicates.search_status(data) == {"state": "running", "done": 0, "total": 0}
    assert len(announced) == 1
    found = searched(data)
    assert (found["state"], found["found"]) == ("done", 1)
    pair = NearDuplicate.objects.get()
    assert (pair.index, pair.other_index) == (1, 0)
    assert pair.cosine >= 0.97


def test_find_compares_all_rows_where_there_is_no_test_split(
    alice: User, embedding_server: Server
) -> None:
    data = factories.dataset(alice, [ExampleRow(row.text, row.label) for row in TWINS])
    near_duplicates.start_search(data)
    assert searched(data)["found"] == 1


def test_find_shows_why_it_failed(
    alice: User, embedding_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = factories.dataset(alice, TWINS)
    monkeypatch.setattr(near_duplicate_search, "MAX_ROWS", 3)
    near_duplicates.start_search(data)
    found = searched(data)
    assert found["state"] == "failed"
    assert "The limit is 3" in found["error"]
    monkeypatch.undo()
    DefaultServer.objects.all().delete()
    near_duplicates.start_search(data)
    assert "No server set for" in searched(data)["error"]


def test_find_of_a_deleted_dataset_ends(alice: User) -> None:
    data = factories.dataset(alice, TWINS)
    near_duplicates.start_search(data)
    data.delete()
    work.run_subject(hooks.NEAR_DUPLICATE_SEARCH, Task.objects.get().subject)
    assert Task.objects.get().state == TaskState.DONE


def test_a_message_of_an_older_version_searches(alice: User, embedding_server: Server) -> None:
    data = factories.dataset(alice, TWINS)
    tasks.find_near_copies(data.pk)
    data.refresh_from_db()
    assert near_duplicates.search_status(data)["found"] == 1


def test_the_limit_is_the_servers(embedding_server: Server) -> None:
    assert near_duplicate_search.text_limit() is None  # nobody has looked yet
    Server.objects.update(stored_facts={"context": 512, "models": [{"id": "m"}]})
    found = hooks.TextLimit("m", 512)
    assert near_duplicate_search.text_limit() == found
    DefaultServer.objects.all().delete()
    assert near_duplicate_search.text_limit() is None
