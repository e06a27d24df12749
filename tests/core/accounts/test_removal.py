"""Deleting a person: in pieces, whatever refers to them, and again after a crash."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core.accounts import removal
from apps.core.models import ApiKey
from apps.datasets.models import Dataset, Example
from apps.datasets.services import create_dataset
from apps.files import ExampleRow

pytestmark = pytest.mark.django_db


def rows(count: int) -> list[ExampleRow]:
    return [ExampleRow(f"text {number}", "label", None) for number in range(count)]


@pytest.fixture
def data(alice: User) -> Dataset:
    return create_dataset(owner=alice, name="Bank", rows=rows(25), origin="tests")


def test_removal_deletes_everything_of_the_person(alice: User, bob: User, data: Dataset) -> None:
    create_dataset(owner=bob, name="Theirs", rows=rows(3), origin="tests")
    removal.remove_now(alice)
    assert not User.objects.filter(pk=alice.pk).exists()
    assert Dataset.objects.get().name == "Theirs"
    assert Example.objects.count() == 3


def test_rows_go_in_pieces(alice: User, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PIECE_ROWS", 10)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        removal.remove_now(alice)
    pieces = [
        query["sql"]
        for query in queries.captured_queries
        if query["sql"].startswith('DELETE FROM "datasets_example" WHERE "datasets_example"."id"')
    ]
    assert len(pieces) == 3


def test_a_receiver_that_fails_does_not_stop_it(
    alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(person: User, **_: Any) -> None:
        raise RuntimeError("the disk is gone")

    removal.removing.connect(fails)
    try:
        removal.remove_now(alice)
    finally:
        removal.removing.disconnect(fails)
    assert not User.objects.filter(pk=alice.pk).exists()
    assert "the disk is gone" in caplog.text


def test_removal_calls_the_hooks_before_it_deletes_rows(alice: User, data: Dataset) -> None:
    seen: list[int] = []

    def note(person: User, **_: Any) -> None:
        seen.append(Dataset.objects.filter(owner=person).count())

    removal.removing.connect(note)
    try:
        removal.remove_now(alice)
    finally:
        removal.removing.disconnect(note)
    assert seen == [1]


def test_removal_resumes_after_a_crash(
    alice: User, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    Example.objects.filter(dataset=data, index__lt=12).delete()
    ApiKey.objects.create(user=alice, name="nightly", start="wb_", token_hash="0" * 64)
    removal.remove_now(alice)
    assert not Example.objects.exists()
    assert not ApiKey.objects.exists()
