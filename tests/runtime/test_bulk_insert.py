"""Rows inserted in bulk are the rows that Django would have saved."""

from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from apps.batch.models import Batch, Item, ItemStatus
from apps.datasets.models import Dataset, Example
from apps.embeddings.models import Embedding, EmbeddingModel
from apps.runtime import bulk_insert as module
from apps.runtime.bulk_insert import bulk_insert, insert_numbered
from apps.servers.models import Server

pytestmark = pytest.mark.django_db


@pytest.fixture
def batch(alice: User) -> Batch:
    server = Server.objects.create(name="GPU", base_url="http://127.0.0.1:1/v1")
    return Batch.objects.create(owner=alice, server=server, handler="none", model="m")


def test_bulk_insert_fills_other_fields_with_their_defaults(batch: Batch) -> None:
    rows = [(batch.pk, 0, {"b": 1, "a": [None, "é"]}), (batch.pk, 1, None)]
    assert bulk_insert(Item, ("batch", "index", "input"), rows) == 2
    Item.objects.create(batch=batch, index=2, input={"b": 1, "a": [None, "é"]})
    first, second, saved = Item.objects.order_by("index").values()
    assert second["input"] is None
    assert first["status"] == ItemStatus.PENDING
    for name in ("id", "index"):
        del first[name], saved[name]
    assert first == saved


def test_bulk_insert_reads_rows_as_a_stream(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 3)
    rows = ((batch.pk, index) for index in range(8))
    with CaptureQueriesContext(connection) as queries:
        assert bulk_insert(Item, ("batch", "index"), rows) == 8
    assert len(queries) == (3 if connection.vendor == "sqlite" else len(queries))
    assert list(Item.objects.values_list("index", flat=True).order_by("index")) == list(range(8))


def test_bulk_insert_of_nothing_asks_the_database_for_nothing(batch: Batch) -> None:
    assert bulk_insert(Item, ("batch", "index"), []) == 0
    assert not Item.objects.exists()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_insert_numbered_inserts_the_rows_of_bulk_insert(batch: Batch, count: int) -> None:
    insert_numbered(Item, ("batch",), (batch.pk,), number="index", count=count)
    found = list(Item.objects.order_by("index").values())
    Item.objects.all().delete()
    bulk_insert(Item, ("batch", "index"), ((batch.pk, index) for index in range(count)))
    wanted = list(Item.objects.order_by("index").values())
    for row in (*found, *wanted):
        del row["id"]
    assert found == wanted
    assert [row["index"] for row in found] == list(range(count))


def test_bulk_insert_raises_at_a_conflict_unless_it_ignores_conflicts() -> None:
    model = EmbeddingModel.objects.create(fingerprint="f", name="m", dimensions=1)
    fields = ("model", "text_hash", "vector", "expires")
    today = date(2026, 11, 23)
    rows: list[tuple[Any, ...]] = [(model.pk, b"1" * 32, b"old", today)]
    bulk_insert(Embedding, fields, rows, ignore_conflicts=True)
    rows = [(model.pk, b"1" * 32, b"new", today), (model.pk, b"2" * 32, b"new", None)]
    with pytest.raises(IntegrityError), transaction.atomic():
        bulk_insert(Embedding, fields, rows)
    bulk_insert(Embedding, fields, rows, ignore_conflicts=True)
    found = Embedding.objects.order_by("text_hash").values_list("vector", "expires")
    assert [(bytes(vector), day) for vector, day in found] == [(b"old", today), (b"new", None)]


storable = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | storable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(storable, inner, max_size=3),
    max_leaves=8,
)


class TestRoundTrip(TestCase):
    @given(st.lists(st.tuples(storable, st.dictionaries(storable, values, max_size=3)), max_size=5))
    @settings(max_examples=40, deadline=None)
    def test_bulk_insert_keeps_every_text_and_json_value(
        self, rows: list[tuple[str, dict[str, Any]]]
    ) -> None:
        owner, _ = User.objects.get_or_create(username="alice")
        dataset = Dataset.objects.create(owner=owner, name="Mails")
        bulk_insert(
            Example,
            ("dataset", "index", "text", "meta"),
            ((dataset.pk, index, text, meta) for index, (text, meta) in enumerate(rows)),
        )
        found = dataset.examples.order_by("index").values_list("text", "meta")
        assert list(found) == rows
