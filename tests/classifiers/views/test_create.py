"""Before training: the checklist beside the form, and its fixes."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.models import Dataset
from apps.files import ExampleRow
from tests.classifiers import factories
from tests.markup import one_line

pytestmark = pytest.mark.django_db


def page_of(browser: Client, data: Dataset) -> str:
    return one_line(browser.get(f"/classify/new/?dataset={data.pk}").content.decode())


def test_what_blocks_training_disables_the_button_and_says_why(
    browser: Client, alice: User
) -> None:
    data = factories.dataset(alice, [ExampleRow("one text", "card"), ExampleRow("another", "card")])
    text = page_of(browser, data)
    assert "Blocks training" in text
    assert "1 problem blocks training: There is only one label, “card”." in text
    assert re.search(r"<button[^>]* disabled[^>]*>\s*Train classifier", text)
    fine = page_of(browser, factories.dataset(alice))
    assert "Blocks training" not in fine
    assert not re.search(r"<button[^>]* disabled[^>]*>\s*Train classifier", fine)


def test_leaks_are_moved_to_training_and_it_comes_back(browser: Client, alice: User) -> None:
    rows = [*factories.rows(), ExampleRow(factories.rows()[0].text, "card", "test")]
    data = factories.dataset(alice, rows)
    text = page_of(browser, data)
    assert "Inflates the score" in text
    here = f"/classify/new/?dataset={data.pk}"
    fix = {"matching": "issue=leak&split=test", "action": "split", "to_split": "train"}
    answer = browser.post(f"/datasets/{data.pk}/edit/", {**fix, "next": here})
    assert answer["location"] == here
    text = page_of(browser, data)
    assert "Inflates the score" not in text
    assert "no test row is in the training data" in text
    assert f'action="/datasets/{data.pk}/undo/"' in text


def test_labels_that_differ_in_case_are_merged_at_once(browser: Client, alice: User) -> None:
    names = {"card": ["Card", "card"], "rate": ["rate", "RATE"], "hello": ["hello"]}
    rows = [
        ExampleRow(row.text, names[row.label or ""][place % len(names[row.label or ""])])
        for place, row in enumerate(factories.rows())
    ]
    data = factories.dataset(alice, rows)
    assert "Merge all 2" in page_of(browser, data)
    answer = browser.post(f"/classify/new/{data.pk}/merge/")
    assert answer["location"] == f"/classify/new/?dataset={data.pk}"
    data.refresh_from_db()
    assert len(data.label_counts) == 3
    assert "no labels differ only in case" in page_of(browser, data)


def test_the_checklist_follows_the_chosen_dataset(browser: Client, alice: User) -> None:
    data = factories.dataset(alice)
    fragment = one_line(browser.get(f"/classify/new/checks/?dataset={data.pk}").content.decode())
    assert "<html" not in fragment
    assert "every label has at least 10 rows" in fragment
    assert 'hx-swap-oob="true"' in fragment
    assert browser.get("/classify/new/checks/").status_code == 404


def test_checks_and_fixes_of_someone_elses_dataset_are_not_found(
    bobs_browser: Client, alice: User
) -> None:
    data = factories.dataset(alice)
    assert bobs_browser.get(f"/classify/new/checks/?dataset={data.pk}").status_code == 404
    assert bobs_browser.post(f"/classify/new/{data.pk}/merge/").status_code == 404
