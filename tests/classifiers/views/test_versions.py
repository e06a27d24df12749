"""Versions side by side, and which of them is live."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier, Run, Status
from apps.classifiers.views.versions import ChangedRow, compare
from tests.classifiers import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(alice: User) -> Classifier:
    return factories.ready(alice, versions=3)


def live_version(made: Classifier) -> int | None:
    made.refresh_from_db()
    return made.current.number if made.current else None


def test_compare_counts_test_rows_with_different_predictions(made: Classifier) -> None:
    third, _, first = made.runs.select_related("classifier")
    found = compare(first, third)
    assert (found["different"], found["unpaired"], found["relabelled"]) == (2, 0, 0)
    assert [row.verdict for row in found["rows"]] == ["newly wrong", "newly wrong"]
    assert found["paired"].rows == 6
    assert found["paired"].difference == pytest.approx(-2 / 6)


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [("b", "a", "fixed"), ("a", "b", "newly wrong"), ("b", "c", "still wrong")],
)
def test_changed_row_names_the_verdict(old: str, new: str, verdict: str) -> None:
    assert ChangedRow("text", "a", old, new).verdict == verdict


def test_versions_compares_the_two_chosen(browser: Client, made: Classifier) -> None:
    page = browser.get(f"/classify/{made.pk}/versions/?old=1&new=2")
    assert (page.context["old"].number, page.context["new"].number) == (1, 2)
    assert page.context["different"] == 1
    same = browser.get(f"/classify/{made.pk}/versions/?old=2&new=2")
    assert same.context["problem"] == "Choose two different versions."
    assert browser.get(f"/classify/{made.pk}/versions/?old=x").status_code == 404


def test_promote_makes_an_earlier_version_live_and_pins_it(
    browser: Client, made: Classifier
) -> None:
    assert browser.post(f"/classify/{made.pk}/runs/1/promote/").status_code == 302
    assert (live_version(made), made.pinned) == (1, True)
    assert browser.post(f"/classify/{made.pk}/runs/3/promote/").status_code == 302
    assert (live_version(made), made.pinned) == (3, False)


def test_promote_needs_a_finished_version(browser: Client, made: Classifier) -> None:
    Run.objects.filter(number=2).update(status=Status.FAILED)
    assert browser.post(f"/classify/{made.pk}/runs/2/promote/").status_code == 404
    assert browser.post(f"/classify/{made.pk}/runs/9/promote/").status_code == 404
    assert browser.get(f"/classify/{made.pk}/runs/1/promote/").status_code == 405
    assert live_version(made) == 3


@pytest.mark.parametrize(("value", "pinned"), [("1", True), ("0", False), ("yes", False)])
def test_pin_sets_the_pin(browser: Client, made: Classifier, value: str, pinned: bool) -> None:
    assert browser.post(f"/classify/{made.pk}/pin/", {"pinned": value}).status_code == 302
    assert live_version(made) == 3
    assert made.pinned is pinned


def test_versions_of_someone_else_are_not_found(bobs_browser: Client, made: Classifier) -> None:
    assert bobs_browser.get(f"/classify/{made.pk}/versions/").status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/pin/", {"pinned": "1"}).status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/runs/1/promote/").status_code == 404
    assert (live_version(made), made.pinned) == (3, False)
