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
    assert page.context["measured"].rows == 30  # 6 test rows say too little
    assert "training rows in cross-validation" in page.content.decode()
    assert "No out-of-scope rows" in page.content.decode()


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
    assert all(truth == predicted for truth, predicted, _, _ in data["rows"])
    assert data["out_of_scope"] == []
    assert (data["steps"][0], data["steps"][-1]) == (0.8, 1.0)
    assert browser.get(f"/classify/{made.pk}/runs/2/gates/").status_code == 404
    assert browser.post(f"/classify/{made.pk}/runs/1/gates/").status_code == 405


def test_thresholds_of_labels_are_saved_and_come_first(browser: Client, made: Classifier) -> None:
    url = f"/classify/{made.pk}/thresholds/"
    data = {"unsure": "0.5", "kept": "1", "label-1": "0.9"}
    assert browser.post(url, data).status_code == 302
    label = factories.newest(made).per_class[1]["label"]
    assert factories.newest(made).thresholds["labels"] == {label: 0.9}
    first = browser.get(url).context["labels"][0]["outcome"]
    assert (first.label, first.threshold, first.own) == (label, 0.9, True)
    browser.post(url, {"unsure": "0.5", "kept": "1"})
    assert "labels" not in factories.newest(made).thresholds


@pytest.mark.parametrize("data", [{"label-9": "0.5"}, {"label-0": "2"}, {"label-x": "1"}])
def test_thresholds_of_unknown_labels_are_refused(
    browser: Client, made: Classifier, data: dict[str, str]
) -> None:
    url = f"/classify/{made.pk}/thresholds/"
    assert browser.post(url, {"unsure": "0.5", "kept": "1", **data}).status_code == 422


def test_presets_tell_what_they_do_to_the_measured_rows(browser: Client, made: Classifier) -> None:
    presets = browser.get(f"/classify/{made.pk}/thresholds/").context["presets"]
    assert [preset.name for preset in presets] == ["Off", "Lenient", "Balanced", "Strict"]
    assert presets[0].lost == 0
    assert [preset.lost for preset in presets] == sorted(preset.lost for preset in presets)


def test_the_lower_half_of_a_threshold_is_not_offered_for_two_labels(
    browser: Client, made: Classifier
) -> None:
    run = factories.newest(made)
    assert 'min="0.33"' in browser.get(f"/classify/{made.pk}/thresholds/").content.decode()
    run.options = {"balanced": True}
    run.save()
    assert 'min="0.00"' in browser.get(f"/classify/{made.pk}/thresholds/").content.decode()
