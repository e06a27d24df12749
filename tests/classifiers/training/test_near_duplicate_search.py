"""Near-duplicates within a dataset, found for the dataset's page."""

import pytest
from django.contrib.auth.models import User

from apps.classifiers import tasks
from apps.classifiers.training import near_duplicate_search
from apps.datasets import near_duplicates, text_limits
from apps.datasets.models import NearCopy
from apps.files import ExampleRow
from apps.servers.models import DefaultServer, Server
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)

TWINS = [
    ExampleRow("where is the new card that I ordered three weeks ago", "card", "train"),
    ExampleRow("where is the new card that I ordered three weeks ago?", "card", "test"),
    ExampleRow("QUITE ANOTHER THING 7 $ 8 % 9", "rate", "train"),
    ExampleRow("hello hello hello hello good day to you", "hello", "train"),
]


def test_it_works(alice: User, embedding_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(tasks.find_near_copies, "delay", told.append)
    data = factories.dataset(alice, TWINS)
    assert near_duplicates.look(data)
    assert told == [data.pk]
    tasks.find_near_copies(data.pk)
    data.refresh_from_db()
    assert data.near["state"] == "done"
    pair = NearCopy.objects.get()
    assert (pair.index, pair.other_index) == (1, 0)
    assert pair.cosine >= 0.97


def test_it_says_why_not(
    alice: User, embedding_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = factories.dataset(alice, TWINS)
    monkeypatch.setattr(near_duplicate_search, "MOST_ROWS", 3)
    near_duplicate_search.find(data.pk)
    data.refresh_from_db()
    assert data.near["state"] == "failed"
    assert "at most 3 rows" in data.near["error"]
    monkeypatch.undo()
    DefaultServer.objects.all().delete()
    near_duplicate_search.find(data.pk)
    data.refresh_from_db()
    assert "No server set for" in data.near["error"]
    near_duplicate_search.find(data.pk + 99)  # deleted meanwhile: nothing to say it to


def test_the_limit_is_the_servers(embedding_server: Server) -> None:
    assert near_duplicate_search.text_limit() is None  # nobody has looked yet
    Server.objects.update(facts={"context": 512, "models": [{"id": "m"}]})
    found = text_limits.TextLimit("m", 512)
    assert near_duplicate_search.text_limit() == found
    DefaultServer.objects.all().delete()
    assert near_duplicate_search.text_limit() is None
