"""The map of texts and the page of duplicates."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier, Run
from apps.datasets.models import Example
from tests.classifiers import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(alice: User) -> Classifier:
    return factories.ready(alice)


def test_map_points_hold_every_row_with_its_labels(browser: Client, made: Classifier) -> None:
    data = browser.get(f"/classify/{made.pk}/runs/1/map/").json()
    assert data["side"] == [0] * 30 + [1] * 6
    assert data["truth"] == data["predicted"] == [0, 1, 2] * 12
    assert data["text"][0].startswith("my bank card")
    assert data["labels"] == sorted(data["labels"], key=factories.LABELS.index)


def test_map_points_hide_a_text_that_changed_since(browser: Client, made: Classifier) -> None:
    Example.objects.filter(index=35).update(text="another text")
    texts = browser.get(f"/classify/{made.pk}/runs/1/map/").json()["text"]
    assert "changed or deleted" in texts[35]
    assert "another text" not in texts


@pytest.mark.parametrize("page", ["map", "copies"])
def test_map_pages_work(browser: Client, made: Classifier, page: str) -> None:
    assert browser.get(f"/classify/{made.pk}/{page}/").status_code == 200
    assert browser.post(f"/classify/{made.pk}/{page}/").status_code == 405


@pytest.mark.parametrize("path", ["map/", "copies/", "runs/1/map/"])
def test_map_of_someone_else_is_not_found(
    bobs_browser: Client, made: Classifier, path: str
) -> None:
    assert bobs_browser.get(f"/classify/{made.pk}/{path}").status_code == 404


@pytest.mark.parametrize("number", ["0", "x", "9999999999", "-1", "2"])
def test_map_of_a_run_that_does_not_exist_is_not_found(
    browser: Client, made: Classifier, number: str
) -> None:
    wanted = 200 if number == "0" else 404  # 0 names no run: the live version
    assert browser.get(f"/classify/{made.pk}/map/", {"run": number}).status_code == wanted


def test_duplicates_of_a_run_without_a_check_say_so(browser: Client, made: Classifier) -> None:
    Run.objects.update(leaks={})
    page = browser.get(f"/classify/{made.pk}/copies/").content.decode()
    assert "This version has no duplicate check" in page
