"""Results: always the live version's, with the rows behind every number."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier, Run, Status
from tests.classifiers import factories
from tests.markup import one_line

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(alice: User) -> Classifier:
    return factories.ready(alice, versions=3)


def text_of(browser: Client, path: str, **more: str) -> str:
    return one_line(browser.get(path, headers=more).content.decode())


def test_results_are_those_of_the_live_version(browser: Client, made: Classifier) -> None:
    browser.post(f"/classify/{made.pk}/runs/1/promote/")
    page = browser.get(f"/classify/{made.pk}/")
    assert page.context["run"].number == 1
    text = one_line(page.content.decode())
    assert "Version 1 is live" in text
    assert "Version 3 is newer but not live." in text
    assert "not significantly different from version 1" in text
    assert f"/classify/{made.pk}/versions/?old=1&amp;new=3" in text
    assert f"/classify/{made.pk}/runs/3/promote/" in text


def test_results_of_another_version_say_that_it_is_not_live(
    browser: Client, made: Classifier
) -> None:
    text = text_of(browser, f"/classify/{made.pk}/?run=1")
    assert "Version 1 is not live." in text
    assert "Try a text" not in text  # another version would answer
    assert "is not live" not in text_of(browser, f"/classify/{made.pk}/?run=3")


def test_results_stay_while_a_version_is_trained(browser: Client, made: Classifier) -> None:
    Run.objects.create(classifier=made, number=4, status=Status.QUEUED)
    text = text_of(browser, f"/classify/{made.pk}/")
    assert "Version 4 is being trained" in text
    assert "Try a text" in text
    assert "Version 3 is live" in text
    assert "Try a text" not in text_of(browser, f"/classify/{made.pk}/progress/")


def test_results_tell_why_the_newest_training_failed(browser: Client, made: Classifier) -> None:
    Run.objects.create(classifier=made, number=4, status=Status.FAILED, error="No room.")
    text = text_of(browser, f"/classify/{made.pk}/")
    assert "Training version 4 failed. No room." in text
    assert "Version 3 stays live." in text


def test_few_test_rows_show_the_interval_first_and_no_calibration(
    browser: Client, made: Classifier
) -> None:
    text = text_of(browser, f"/classify/{made.pk}/")
    assert "95% interval from only 6 test rows" in text
    assert "Fewer than 100 test rows" in text
    assert "data-chart" not in text
    run = factories.newest(made)
    run.metrics["rows"] = 100
    run.save()
    text = text_of(browser, f"/classify/{made.pk}/")
    assert "accuracy on 100 test rows" in text
    assert 'data-chart="reliability"' in text


def test_a_pair_opens_its_rows(browser: Client, made: Classifier) -> None:
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    found = re.findall(r'data-rows="truth=(\d)&amp;predicted=(\d)"', page)
    wrong = [pair for pair in found if pair[0] != pair[1]]
    truth, predicted = wrong[0]
    path = f"/classify/{made.pk}/runs/3/rows/?truth={truth}&predicted={predicted}"
    text = text_of(browser, path, HX_Request="true")
    assert "1 row, highest confidence first" in text
    assert "<html" not in text
    whole = text_of(browser, path)
    assert "<html" in whole
    assert "1 row, highest confidence first" in whole


@pytest.mark.parametrize("query", ["", "?truth=0", "?truth=0&predicted=9", "?truth=x&predicted=0"])
def test_rows_of_labels_that_are_not_there_are_not_found(
    browser: Client, made: Classifier, query: str
) -> None:
    assert browser.get(f"/classify/{made.pk}/runs/3/rows/{query}").status_code == 404


def test_the_matrix_shows_labels_with_mistakes_or_all(browser: Client, made: Classifier) -> None:
    Run.objects.update(confusion=[[2, 0, 1], [0, 2, 0], [0, 0, 2]])
    path = f"/classify/{made.pk}/runs/3/matrix/"
    some, whole = browser.get(path), browser.get(path, {"all": "1"})
    assert [line.label for line in some.context["matrix"].lines] == ["card", "hello"]
    assert {line.label for line in whole.context["matrix"].lines} == {"card", "hello", "rate"}
    assert "1 of 3 rows with label card: predicted as hello" in some.content.decode()
    Run.objects.update(confusion=[])
    assert browser.get(path).status_code == 404


def test_results_of_someone_else_are_not_found(bobs_browser: Client, made: Classifier) -> None:
    for path in ("", "runs/3/matrix/", "runs/3/rows/?truth=0&predicted=0"):
        assert bobs_browser.get(f"/classify/{made.pk}/{path}").status_code == 404


def test_the_list_shows_only_ones_own_with_their_state(
    browser: Client, bobs_browser: Client, made: Classifier
) -> None:
    page = browser.get("/classify/").content.decode()
    assert re.search(r"3 labels · live", page)
    assert "36 rows · 3 labels" in page
    assert "list-mark-live" in page
    assert "36 rows" not in bobs_browser.get("/classify/").content.decode()
