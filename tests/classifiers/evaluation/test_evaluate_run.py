"""The pages about one run: thresholds, map, copies, improve, versions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from apps.classifiers import services
from apps.classifiers.errors import NoRowResults
from apps.classifiers.evaluation import map_projection, row_results
from apps.classifiers.models import Classifier, Run
from apps.classifiers.prediction import predictor, predictor_file
from apps.classifiers.views.versions import compare
from apps.datasets.models import Example, QueueItem
from apps.datasets.services import relabel
from apps.files import ExampleRow
from apps.servers.models import Server
from tests.classifiers import factories
from tests.markup import one_line

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = ("thresholds", "map", "copies", "improve", "versions", "chat", "files", "export")
STRANGE = [ExampleRow(f"zebra quantum {number} ~~~", "oos") for number in range(5)]


@pytest.fixture(autouse=True)
def _server(embedding_server: Server) -> None:
    pass


@pytest.fixture
def made(alice: User) -> Classifier:
    return factories.trained(alice)


def test_classifier_pages_open_after_the_training(browser: Client, made: Classifier) -> None:
    for page in PAGES:
        answer = browser.get(f"/classify/{made.pk}/{page}/")
        assert answer.status_code == 200, page
        assert 'aria-current="page"' in answer.content.decode()
        assert browser.get(f"/classify/{made.pk}/{page}/?run=1").status_code == 200
        assert browser.get(f"/classify/{made.pk}/{page}/?run=7").status_code == 404


def test_classifier_pages_open_before_the_training(browser: Client, alice: User) -> None:
    waiting = factories.classifier(alice)
    for page in PAGES:
        answer = browser.get(f"/classify/{waiting.pk}/{page}/")
        assert "Not trained yet" in answer.content.decode()
        assert answer.status_code == 200


def test_classifier_pages_open_when_the_files_are_gone(
    browser: Client, made: Classifier, settings: Settings
) -> None:
    row_results.remove(settings.CLASSIFIERS_DIR, factories.newest(made).artefact)
    row_results.load.cache_clear()
    for page in PAGES:
        assert browser.get(f"/classify/{made.pk}/{page}/").status_code == 200
    assert "Train again" in browser.get(f"/classify/{made.pk}/thresholds/").content.decode()
    for data in ("gates", "map"):
        assert browser.get(f"/classify/{made.pk}/runs/1/{data}/").status_code == 409


def test_pages_of_a_run_hide_classifiers_of_others(bobs_browser: Client, made: Classifier) -> None:
    for page in PAGES:
        assert bobs_browser.get(f"/classify/{made.pk}/{page}/").status_code == 404
    for path in ("gates/", "map/", "export.json", "export.zip"):
        assert bobs_browser.get(f"/classify/{made.pk}/runs/1/{path}").status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/runs/1/promote/").status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/pin/").status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/improve/").status_code == 404


def test_out_of_scope_rows_are_never_a_label(browser: Client, alice: User) -> None:
    rows = factories.rows() + STRANGE + [ExampleRow("zebra judged", "OOS", "test")]
    made = factories.trained(alice, factories.dataset(alice, rows))
    run = factories.newest(made)
    assert [entry["label"] for entry in run.per_class] == ["card", "hello", "rate"]
    assert run.fit["strange_rows"] == 6
    assert run.train_rows + run.metrics["rows"] == 36
    assert any(
        "6 rows labelled out of scope (“OOS”, “oos”) are not trained" in note for note in run.notes
    )
    assert run.thresholds["kept"] == 0.99
    page = browser.get(f"/classify/{made.pk}/thresholds/").content.decode()
    assert "and 6 out-of-scope rows" in one_line(page)
    assert "AUROC" in page
    assert "Too few rows for a reliable value" in page
    assert len(browser.get(f"/classify/{made.pk}/runs/1/gates/").json()["out_of_scope"]) == 6


def test_thresholds_are_chosen_by_some_rows_and_confirmed_by_others(
    browser: Client, alice: User
) -> None:
    strange = [ExampleRow(f"zebra quantum {number} ~~~", "oos") for number in range(21)]
    made = factories.trained(alice, factories.dataset(alice, factories.rows() + strange))
    page = browser.get(f"/classify/{made.pk}/thresholds/")
    assert page.context["measured"].rows == factories.newest(made).train_rows
    assert page.context["measured"].out_of_scope == 11
    assert "11 out-of-scope rows that did not set the default" in one_line(page.content.decode())
    assert len(browser.get(f"/classify/{made.pk}/runs/1/gates/").json()["out_of_scope"]) == 11


def test_run_without_familiarity_uses_its_logits(
    browser: Client, made: Classifier, settings: Settings
) -> None:
    """Files and gates as they were written then."""
    run = factories.newest(made)
    folder = settings.CLASSIFIERS_DIR
    rows = folder / f"{run.artefact}.rows.npz"
    with np.load(rows) as arrays:
        kept = {name: arrays[name] for name in arrays.files if not name.endswith(".familiar")}
    np.savez_compressed(rows, **kept)
    whole = predictor_file.load(folder, run.artefact)
    card = replace(whole.card, familiarity={}, favour=[])
    predictor_file.save(folder, run.artefact, predictor.Predictor(card, whole.weights, whole.bias))
    run.thresholds = {"unsure": 0.0, "kept": 0.9, "max_logit": 1e6}
    run.save()
    predictor_file.load.cache_clear()
    row_results.load.cache_clear()
    url = f"/classify/{made.pk}/try/"
    assert "None of these" in factories.post(browser, url, {"text": "hello"}).content.decode()
    page = f"/classify/{made.pk}/thresholds/"
    assert browser.get(page).context["measured"].none == run.train_rows
    assert browser.post(page, {"unsure": "0", "kept": "1"}).status_code == 302
    assert "None of these" not in factories.post(browser, url, {"text": "hello"}).content.decode()


def test_saved_gates_hold_for_the_run_and_the_next(browser: Client, made: Classifier) -> None:
    url = f"/classify/{made.pk}/thresholds/"
    assert browser.post(url, {"unsure": "0.7", "kept": "0.9"}).status_code == 302
    run = factories.newest(made)
    assert (run.thresholds["unsure"], run.thresholds["kept"]) == (0.7, 0.9)
    factories.train(services.start_run(Classifier.objects.get()))
    assert factories.newest(made).thresholds == run.thresholds
    tried = factories.post(browser, f"/classify/{made.pk}/try/", {"text": "§$%& zzz 0x00"})
    assert "None of these" in tried.content.decode() or "Unsure" in tried.content.decode()


@pytest.mark.parametrize("data", [{}, {"unsure": "2", "kept": "0.9"}, {"unsure": "x", "kept": "1"}])
def test_thresholds_page_refuses_bad_thresholds(
    browser: Client, made: Classifier, data: dict[str, str]
) -> None:
    answer = browser.post(f"/classify/{made.pk}/thresholds/", data)
    assert answer.status_code == 422
    assert "0.8 to 1" in answer.content.decode()


def test_the_rows_behind_the_gates(browser: Client, made: Classifier, settings: Settings) -> None:
    data = browser.get(f"/classify/{made.pk}/runs/1/gates/").json()
    run = factories.newest(made)
    known = row_results.load(settings.CLASSIFIERS_DIR, run.artefact)
    assert len(data["rows"]) == run.train_rows
    right = sum(truth == predicted for truth, predicted, _, _ in data["rows"])
    assert right == known.train.correct.sum()
    last = len(data["steps"]) - 1
    assert all(step <= last for *_, step in data["rows"])  # the last lets everything through
    rejected = [sum(step < passes for *_, passes in data["rows"]) for step in range(last + 1)]
    assert rejected == sorted(rejected, reverse=True)
    assert rejected[0] > rejected[-1] == 0


def test_the_map_shows_every_text(browser: Client, made: Classifier) -> None:
    data = browser.get(f"/classify/{made.pk}/runs/1/map/").json()
    assert {len(data[name]) for name in ("x", "y", "side", "truth", "predicted", "text")} == {36}
    assert set(data["side"]) == {0, 1}
    page = browser.get(f"/classify/{made.pk}/map/").content.decode()
    assert "principal components" in page
    for text, truth in zip(data["text"], data["truth"], strict=True):
        assert text.startswith(factories.TOPICS[data["labels"][truth]][:12])


def test_a_row_that_changed_since_is_not_shown_as_it_was(browser: Client, made: Classifier) -> None:
    Example.objects.filter(index=0).update(text="something else")
    texts = browser.get(f"/classify/{made.pk}/runs/1/map/").json()["text"]
    assert sum("changed or deleted" in text for text in texts) == 1


def test_copies_are_counted_and_shown_side_by_side(browser: Client, alice: User) -> None:
    train = [*factories.rows(8), *factories.rows(2)]
    test = [ExampleRow(row.text.upper(), row.label, "test") for row in factories.rows(1)]
    other = [ExampleRow(factories.TOPICS["card"].format(3), "rate", "test")]
    made = factories.trained(alice, factories.dataset(alice, train + test + other))
    run = factories.newest(made)
    assert run.leaks["train_copies"] == 6
    assert run.leaks["test_exact"] == 4
    assert run.leaks["conflicts"] == 1
    assert run.leaks["pairs"][0]["test"]["label"] == "rate"
    assert run.leaks["pairs"][0]["train"]["label"] == "card"
    assert 0 <= run.leaks["naive_accuracy"] <= 1
    assert run.leaks["grouped_accuracy"] is not None
    assert any("4 of the 4 test rows are also in the" in note for note in run.notes)
    page = browser.get(f"/classify/{made.pk}/copies/").content.decode()
    assert "Closest pairs" in page
    assert "random folds put duplicates on both sides" in page


def test_the_learning_curve_ends_at_the_score(made: Classifier) -> None:
    run = factories.newest(made)
    assert [point["rows"] for point in run.learning_curve] == sorted(
        point["rows"] for point in run.learning_curve
    )
    assert run.learning_curve[-1]["accuracy"] == run.metrics["accuracy"]
    assert run.learning_curve[-1]["rows"] == run.train_rows
    assert "too few test rows to tell" in run.learning_curve_text  # there are six
    assert not run.has_calibration


def test_the_queue_never_holds_a_test_row(alice: User) -> None:
    rows = factories.rows(20)
    flipped = [
        ExampleRow(row.text, "hello" if place in {0, 3, 6} else row.label)
        for place, row in enumerate(rows)
    ]
    unlabelled = [ExampleRow(f"do I get a rate or a card {n}", "card") for n in range(4)]
    data = factories.dataset(alice, flipped + unlabelled)
    Example.objects.filter(index__gte=60).update(label="")
    made = factories.trained(alice, data)
    run = factories.newest(made)
    assert run.fit["unlabelled_rows"] == 4
    assert not {entry["index"] for entry in run.review_queue} & set(run.test_indices)
    reasons = {entry["reason"] for entry in run.review_queue}
    assert "unlabelled" in reasons
    errors = [entry for entry in run.review_queue if entry["reason"] == "label_error"]
    held_back = set(run.test_indices)
    assert {0, 3, 6} - held_back <= {entry["index"] for entry in errors}
    assert all(entry["suggested"][0] == "card" for entry in errors if entry["index"] in {0, 3, 6})
    assert len({entry["index"] for entry in run.review_queue}) == len(run.review_queue)


def test_the_queue_goes_to_the_labelling_page(browser: Client, alice: User) -> None:
    rows = factories.rows(20)
    rows[0] = ExampleRow(rows[0].text, "hello")
    made = factories.trained(alice, factories.dataset(alice, rows))
    url = f"/classify/{made.pk}/improve/"
    assert "Rows to review" in browser.get(url).content.decode()
    answer = browser.post(url)
    assert answer.status_code == 302
    assert answer["location"].startswith(f"/datasets/{made.dataset_id}/label/?queue=")
    QueueItem.objects.update(seen=True)
    page = browser.get(url).content.decode()
    assert "rows reviewed" in page  # and are not asked a second time
    assert browser.post(url).status_code == 200


def test_versions_are_compared_on_the_same_rows(browser: Client, alice: User) -> None:
    test = factories.dataset(alice, factories.rows(10, start=100), "Held")
    bad = [
        ExampleRow(row.text, "rate" if row.label == "card" and place % 2 else row.label)
        for place, row in enumerate(factories.rows(20))
    ]
    data = factories.dataset(alice, bad)
    made = factories.trained(alice, data, test_dataset=test)
    url = f"/classify/{made.pk}/versions/"
    assert "Train again" in browser.get(url).content.decode()
    for example in Example.objects.filter(dataset=data, text__contains="card"):
        relabel(example, "card")
    factories.train(services.start_run(Classifier.objects.get(pk=made.pk)))
    old, new = Run.objects.order_by("number").select_related("classifier")
    found = compare(old, new)
    paired = found["paired"]
    assert paired.rows == 30
    assert paired.new_accuracy == pytest.approx(new.metrics["accuracy"])
    assert paired.old_accuracy == pytest.approx(old.metrics["accuracy"])
    assert len(found["rows"]) == min(60, found["different"])
    page = browser.get(f"{url}?old=1&new=2").content.decode()
    assert "McNemar" in page
    assert "two different versions" in browser.get(f"{url}?old=2&new=2").content.decode()


def test_runs_without_a_common_test_row_are_not_compared(
    browser: Client, alice: User, made: Classifier
) -> None:
    Classifier.objects.update(dataset=factories.dataset(alice, factories.rows(12, start=500)))
    made.refresh_from_db()
    factories.train(services.start_run(made))
    assert factories.newest(made).error == ""
    page = browser.get(f"/classify/{made.pk}/versions/").content.decode()
    assert "share no test row" in page


def test_what_a_run_saw_is_remembered_and_judges_again(alice: User) -> None:
    data = factories.dataset(alice)
    made = factories.trained(alice, data)
    first = factories.newest(made)
    data.refresh_from_db()
    assert data.test_rows == first.metrics["rows"] == 6
    assert first.snapshots[0]["version"] == data.version
    example = Example.objects.exclude(index__in=first.test_indices).first()
    assert example is not None
    relabel(example, "hello" if example.label != "hello" else "card")
    factories.train(services.start_run(made))
    second = factories.newest(made)
    assert second.test_indices == first.test_indices
    assert second.snapshots[0]["version"] == first.snapshots[0]["version"] + 1
    assert second.snapshots[0]["hash"] != first.snapshots[0]["hash"]


def test_roll_back_and_forward(browser: Client, api: Client, made: Classifier) -> None:
    factories.train(services.start_run(made))
    made.refresh_from_db()
    second = factories.newest(made)
    assert (made.current_id, made.pinned) == (second.pk, False)
    assert browser.post(f"/classify/{made.pk}/runs/1/promote/").status_code == 302
    made.refresh_from_db()
    assert made.current is not None
    assert (made.current.number, made.pinned) == (1, True)
    factories.train(services.start_run(made))
    made.refresh_from_db()
    assert made.current.number == 1  # it waits
    path = f"/api/v1/classifiers/{made.pk}/runs/3/promote"
    assert api.post(path).status_code == 200
    made.refresh_from_db()
    assert (made.current.number, made.pinned) == (3, False)
    assert api.post(f"/api/v1/classifiers/{made.pk}/runs/9/promote").status_code == 404
    assert browser.get(f"/classify/{made.pk}/runs/1/promote/").status_code == 405


def worse_run(made: Classifier) -> Run:
    """Another run of it, after half of the labels were given by lot."""
    random = np.random.default_rng(0)
    for example in Example.objects.filter(dataset=made.dataset):
        relabel(example, str(random.choice(["card", "rate", "hello"])))
    factories.train(services.start_run(Classifier.objects.get(pk=made.pk)))
    return factories.newest(made)


@pytest.fixture
def good_then_bad(alice: User) -> Classifier:
    test = factories.dataset(alice, factories.rows(30, start=100), "Held")
    made = factories.trained(alice, factories.dataset(alice, factories.rows(20)), test_dataset=test)
    worse_run(made)
    made.refresh_from_db()
    return made


def test_a_run_that_is_worse_by_more_than_luck_is_held_back(
    browser: Client, api: Client, good_then_bad: Classifier
) -> None:
    made = good_then_bad
    second, first = made.runs.order_by("-number")
    assert (made.current_id, made.pinned) == (first.pk, False)
    assert second.status == "ready"
    assert "Held back: on the 90 test rows" in second.notes[0]
    assert "run 1 (McNemar’s test, p < 0.001)" in second.notes[0]
    assert (
        "like the latest version" in browser.get(f"/classify/{made.pk}/versions/").content.decode()
    )
    compared = browser.get(f"/classify/{made.pk}/versions/?old=1&new=2").content.decode()
    assert "Version 2 is significantly worse" in compared
    # The headline is of the run that answers, on the page and over the API.
    page = browser.get(f"/classify/{made.pk}/")
    assert page.context["run"] == first
    assert "significantly worse than version 1" in one_line(page.content.decode())
    shown = api.get(f"/api/v1/classifiers/{made.pk}").json()
    assert (shown["version"], shown["metrics"]) == (1, first.metrics)
    assert (shown["newest"]["version"], shown["newest"]["metrics"]) == (2, second.metrics)
    assert "Held back" in shown["newest"]["notes"][0]
    # Whoever wants it all the same may have it.
    browser.post(f"/classify/{made.pk}/runs/2/promote/")
    assert browser.get(f"/classify/{made.pk}/").context["run"] == second
    assert api.get(f"/api/v1/classifiers/{made.pk}").json()["metrics"] == second.metrics


def test_a_run_that_is_not_worse_answers(made: Classifier) -> None:
    factories.train(services.start_run(made))
    made.refresh_from_db()
    assert made.current == factories.newest(made)


def test_after_a_rollback_the_headline_is_of_the_run_that_answers(
    browser: Client, api: Client, made: Classifier
) -> None:
    factories.train(services.start_run(made))
    browser.post(f"/classify/{made.pk}/runs/1/promote/")
    first = Run.objects.get(number=1)
    Run.objects.filter(number=1).update(metrics=first.metrics | {"accuracy": 0.123, "rows": 6})
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    assert "12.3" in page
    assert "You pinned version 1." in page
    assert api.get(f"/api/v1/classifiers/{made.pk}").json()["metrics"]["accuracy"] == 0.123
    assert "Version 2 is not live." in browser.get(f"/classify/{made.pk}/?run=2").content.decode()


def test_new_runs_wait_where_a_person_wants_to_choose(browser: Client, made: Classifier) -> None:
    url = f"/classify/{made.pk}/versions/"
    assert "Pin the live version" in browser.get(url).content.decode()
    assert browser.post(f"/classify/{made.pk}/pin/", {"pinned": "1"}).status_code == 302
    factories.train(services.start_run(made))
    made.refresh_from_db()
    assert made.current is not None
    assert made.current.number == 1
    browser.post(f"/classify/{made.pk}/pin/", {"pinned": "0"})
    factories.train(services.start_run(made))
    made.refresh_from_db()
    assert made.current.number == 3


def test_a_named_version_answers(api: Client, made: Classifier) -> None:
    factories.train(services.start_run(made))
    path = f"/api/v1/classifiers/{made.pk}/predict"

    def asked(**more: int) -> Any:
        return factories.post(
            api, path, {"texts": ["hello"], **more}, content_type="application/json"
        )

    answer = asked(version=1, top=1).json()
    assert answer["version"] == 1
    assert len(answer["predictions"][0]["top"]) == 1
    assert asked().json()["version"] == 2
    assert asked(version=9).status_code == 404
    Run.objects.filter(number=2).update(status="failed")
    assert asked(version=2).status_code == 409


def test_a_prefix_and_a_truncation_are_kept_with_the_classifier(
    browser: Client, alice: User
) -> None:
    data = factories.dataset(alice)
    form = {"name": "x", "dataset": data.pk, "text_prefix": "query: ", "dimensions": "64"}
    answer = browser.post("/classify/new/", form | {"long_texts": "cut"})
    assert answer.status_code == 302
    made = Classifier.objects.get()
    assert made.options["prefix"] == "query: "
    Classifier.objects.update(options=made.options | {"dimensions": 16})
    Run.objects.update(options=made.options | {"dimensions": 16})
    factories.train(factories.newest(made))
    run = factories.newest(made)
    assert run.error == ""
    assert (run.embedding["dimensions"], run.embedding["prefix"]) == (16, "query: ")
    tried = factories.post(browser, f"/classify/{made.pk}/try/", {"text": "long " * 1500})
    assert "Truncated to" in tried.content.decode()


def test_pages_ask_the_same_number_of_queries(
    browser: Client, made: Classifier, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        factories.train(services.start_run(made))
        for page in PAGES:
            with django_assert_max_num_queries(13):
                browser.get(f"/classify/{made.pk}/{page}/")


def test_evidence_that_is_damaged_is_none(made: Classifier, settings: Settings) -> None:
    run = factories.newest(made)
    path = settings.CLASSIFIERS_DIR / f"{run.artefact}.rows.npz"
    for content in (b"", b"PK\x03\x04", b"\x80\x04pickle"):
        path.write_bytes(content)
        row_results.load.cache_clear()
        with pytest.raises(NoRowResults):
            row_results.load(settings.CLASSIFIERS_DIR, run.artefact)


def test_the_page_says_that_umap_placed_the_points(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_projection, "FEWEST", 10)
    monkeypatch.setattr(map_projection, "umap_projection", lambda vectors, seed: vectors[:, :2])
    made = factories.trained(alice)
    assert "UMAP projection" in browser.get(f"/classify/{made.pk}/map/").content.decode()
