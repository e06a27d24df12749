"""Data of earlier versions after an upgrade."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.similarity.text_key import text_key
from tests.datasets import factories

update_text_keys = import_module("apps.datasets.migrations.0007_text_keys").update_text_keys


@pytest.mark.django_db
def test_update_text_keys_finds_duplicates_by_the_normalised_text(alice: User) -> None:
    dataset = factories.create(alice, [("It works.", "a"), ("it  works.", "a"), ("other", "b")])
    untouched = factories.create(alice, [("a", "x"), ("b", "x")])
    dataset.examples.filter(index=1).update(text_key=5)  # as an earlier version computed it
    Dataset.objects.update(duplicates=0, report={"version": 0})
    update_text_keys(apps, None)
    keys = list(dataset.examples.order_by("index").values_list("text_key", flat=True))
    assert keys == [text_key("it works."), text_key("it works."), text_key("other")]
    dataset.refresh_from_db()
    untouched.refresh_from_db()
    assert (dataset.duplicates, dataset.report) == (1, {})
    assert (untouched.duplicates, untouched.report) == (0, {"version": 0})


@pytest.mark.django_db
def test_keys_hold_for_rows_written_from_now_on(alice: User) -> None:
    dataset = factories.create(alice, [("Café", "a"), ("CAFE\u0301 ", "a"), ("cafe", "b")])
    assert dataset.duplicates == 1
