"""The page that sets the thresholds, and the rows behind its chart."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier
from tests.classifiers import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(alice: User) -> Classifier:
    return factories.ready(alice)


def test_thresholds_works(browser: Client, made: Classifier) -> None:
    page = browser.get(f"/classify/{made.pk}/thresholds/")
    assert page.status_code == 200
    assert (page.context["passed"].rows, page.context["confirmed"].rows) == (30, 6)


def test_thresholds_are_stored_with_the_run_and_the_classifier(
    browser: Client, made: Classifier
) -> None:
    answer = browser.post(f"/classify/{made.pk}/thresholds/", {"unsure": "0.6", "kept": "0.95"})
    assert answer.status_code == 302
    stored = factories.newest(made).thresholds
    assert (stored["unsure"], stored["kept"]) == (0.6, 0.95)
    made.refresh_from_db()
    assert made.options["gates"] == {"unsure": 0.6, "kept": 0.95}


@pytest.mark.parametrize(
    "data", [{}, {"unsure": "-1", "kept": "1"}, {"unsure": "0", "kept": "0.79"}]
)
def test_thresholds_rejects_bad_input(
    browser: Client, made: Classifier, data: dict[str, str]
) -> None:
    before = factories.newest(made).thresholds
    assert browser.post(f"/classify/{made.pk}/thresholds/", data).status_code == 422
    assert factories.newest(made).thresholds == before


def test_thresholds_of_someone_else_are_not_found(bobs_browser: Client, made: Classifier) -> None:
    for path in ("thresholds/", "runs/1/gates/"):
        assert bobs_browser.get(f"/classify/{made.pk}/{path}").status_code == 404
    data = {"unsure": "0.6", "kept": "0.95"}
    assert bobs_browser.post(f"/classify/{made.pk}/thresholds/", data).status_code == 404
    assert factories.newest(made).thresholds["unsure"] == 0.5


def test_threshold_rows_hold_one_entry_for_each_training_row(
    browser: Client, made: Classifier
) -> None:
    data = browser.get(f"/classify/{made.pk}/runs/1/gates/").json()
    assert len(data["rows"]) == 30
    assert browser.get(f"/classify/{made.pk}/runs/2/gates/").status_code == 404
    assert browser.post(f"/classify/{made.pk}/runs/1/gates/").status_code == 405
