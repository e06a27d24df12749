"""Real rows, synthetic rows, both: trained by one button, compared on the same test rows."""

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from apps.classifiers.evaluation import row_results
from apps.classifiers.evaluation.dataset_value import LabelScore, compare_labels, describe_gain
from apps.classifiers.evaluation.row_results import MapPoints, PredictedRows, RowResults
from apps.classifiers.evaluation.statistics.mcnemar import (
    PairedResult,
    RunPredictions,
    compare_paired,
    shared_test_rows,
)
from apps.classifiers.models import Classifier, Run
from apps.datasets.models import Dataset
from apps.servers.models import DefaultServer
from apps.work import services as work
from apps.work.models import Task
from tests.classifiers import factories

ROWS = 40


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs that were queued."""
    queued: list[int] = []
    real = work.enqueue

    def enqueue(kind: str, subject: int, **options: Any) -> Task | None:
        if kind.startswith("datasets."):
            return real(kind, subject, **options)
        queued.append(subject)
        return None

    monkeypatch.setattr(work, "enqueue", enqueue)
    return queued


@pytest.fixture
def sides(alice: User) -> dict[str, int]:
    names = ("real", "synthetic", "both")
    return {name: factories.dataset(alice, name=name).pk for name in names}


def side(right: int, rows: int = ROWS, *, first_key: int = 0) -> PredictedRows:
    """Test rows of label 0, the first of them labelled right, the others as label 1."""
    nothing = np.zeros(rows, dtype=np.float32)
    return PredictedRows(
        index=np.arange(rows),
        source=np.zeros(rows, dtype=np.int8),
        key=np.arange(first_key, first_key + rows, dtype=np.uint64),
        truth=np.zeros(rows, dtype=np.int32),
        predicted=(np.arange(rows) >= right).astype(np.int32),
        confidence=nothing,
        label_probability=nothing,
        margin=nothing,
        max_logit=nothing,
        familiarity=nothing,
    )


def ended(run: int, right: int, f1: float | None, settings: Settings) -> None:
    per_class = [
        {"label": "card", "support": ROWS, "f1": f1, "predicted": right},
        {"label": "rate", "support": 0, "f1": None, "predicted": ROWS - right},
    ]
    accuracy = right / ROWS
    metrics = {"accuracy": accuracy, "accuracy_low": accuracy, "accuracy_high": accuracy}
    Run.objects.filter(pk=run).update(status="ready", metrics=metrics, per_class=per_class)
    known = RowResults(side(0, 0), side(right), side(0, 0), side(0, 0), MapPoints())
    row_results.save(settings.CLASSIFIERS_DIR, f"run-{run}", known)
    row_results.load.cache_clear()


@pytest.mark.usefixtures("embedding_server")
def test_one_button_trains_all_three(
    browser: Client, sides: dict[str, int], told: list[int], settings: Settings
) -> None:
    assert "Train 3 classifiers" in browser.get("/classify/worth/", sides).content.decode()
    address = browser.post("/classify/worth/", sides)["location"]
    made = list(Classifier.objects.order_by("pk"))
    assert [one.dataset_id for one in made] == list(sides.values())
    assert parse_qs(urlsplit(address).query)["trained"] == [str(one.pk) for one in made]
    assert len(told) == 3
    page = browser.get(address).content.decode()
    assert 'hx-trigger="every 2s"' in page
    assert "Train 3 classifiers" not in page
    for run, (right, f1) in zip(told, ((28, 0.5), (24, None), (36, 0.75)), strict=True):
        ended(run, right, f1, settings)
    answer = browser.get(address, headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert "<html" not in page
    assert "hx-trigger" not in page
    assert "The synthetic rows help significantly: of 40 test rows, 8 are correct only" in page
    assert "+20.0</span>" in page
    assert [line.label for line in answer.context["labels"]] == ["card"]
    row_results.remove(settings.CLASSIFIERS_DIR, f"run-{told[2]}")
    row_results.load.cache_clear()
    assert "could not be computed" in browser.get(address).content.decode()


@pytest.mark.usefixtures("embedding_server")
def test_the_verdict_needs_no_classifier_of_synthetic_rows_alone(
    browser: Client, alice: User, sides: dict[str, int], told: list[int], settings: Settings
) -> None:
    """Rows made for one confused label: beside real rows they are worth something."""
    one_label = factories.dataset(
        alice, [row for row in factories.rows(4) if row.label == "card"], name="made"
    )
    assert set(one_label.examples.values_list("label", flat=True)) == {"card"}
    address = browser.post("/classify/worth/", sides | {"synthetic": one_label.pk})["location"]
    trained = parse_qs(urlsplit(address).query)["trained"]
    assert trained[1] == "0"
    assert len(told) == 2
    assert "cannot be trained alone" in browser.get(address).content.decode()
    ended(told[0], 28, 0.5, settings)
    ended(told[1], 36, 0.75, settings)
    answer = browser.get(address)
    assert "The synthetic rows help significantly" in answer.content.decode()
    assert answer.context["labels"][0].cells[1].f1 is None


@pytest.mark.usefixtures("embedding_server")
def test_a_synthetic_run_that_failed_holds_no_verdict_up(
    browser: Client, sides: dict[str, int], told: list[int], settings: Settings
) -> None:
    address = browser.post("/classify/worth/", sides)["location"]
    ended(told[0], 28, 0.5, settings)
    Run.objects.filter(pk=told[1]).update(status="failed", error="No test row has its label.")
    ended(told[2], 36, 0.75, settings)
    page = browser.get(address).content.decode()
    assert "The synthetic rows help significantly" in page
    assert "No test row has its label." in page


@pytest.mark.parametrize(
    ("right", "says"),
    [
        ((28, 36), "The synthetic rows help significantly: of 40 test rows, 8 are correct only"),
        ((36, 28), "The synthetic rows hurt significantly"),
        ((28, 29), "No significant difference: of 40 test rows, 1 are correct only with"),
        (
            (28, 28),
            "No difference: with and without the synthetic rows, the same 28 of 40 test rows",
        ),
    ],
)
def test_the_verdict_counts_rows_and_not_overlaps(right: tuple[int, int], says: str) -> None:
    old, new = (RunPredictions(side(count), ["card", "rate"]) for count in right)
    rows = shared_test_rows(old, new)
    assert says in describe_gain(compare_paired(rows.old_correct, rows.new_correct))


def test_a_verdict_says_how_sure_it_is() -> None:
    assert "p = 0.008" in describe_gain(PairedResult(28, 0, 8, 4, 0.0078, 0.06, 0.32))
    assert "p < 0.001" in describe_gain(PairedResult(28, 0, 18, 4, 0.0000076, 0.06, 0.32))


def test_rows_are_compared_by_text_and_labels_by_name() -> None:
    """Half of the rows are the same, and the two number their labels differently."""
    old = RunPredictions(side(20), ["card", "rate"])
    new = RunPredictions(side(10, first_key=20), ["rate", "card"])
    rows = shared_test_rows(old, new)
    assert len(rows) == rows.relabelled == 20
    assert set(rows.truth) == set(rows.old_predicted) == {"rate"}
    assert rows.new_predicted == ["rate"] * 10 + ["card"] * 10
    assert (rows.old_correct.sum(), rows.new_correct.sum()) == (20, 10)
    assert rows.at_new.tolist() == list(range(20))
    assert not len(shared_test_rows(old, RunPredictions(side(5, first_key=99), ["card", "rate"])))


def test_gains_by_label() -> None:
    real = [{"label": "card", "support": 9, "f1": 0.5}, {"label": "rate", "support": 0, "f1": None}]
    made = [{"label": "loan", "support": 4, "f1": 0.25}]
    both = [{"label": "card", "support": 9, "f1": 0.75}, {"label": "loan", "support": 4, "f1": 0.5}]
    card, loan = compare_labels([real, made, both])
    assert (card.label, card.support) == ("card", 9)
    assert card.cells == [LabelScore(0.5, 0.0), LabelScore(None, None), LabelScore(0.75, 0.25)]
    assert loan.cells == [LabelScore(None, None), LabelScore(0.25, None), LabelScore(0.5, None)]


@pytest.mark.usefixtures("embedding_server")
def test_what_cannot_be_trained(browser: Client, sides: dict[str, int], told: list[int]) -> None:
    DefaultServer.objects.all().delete()
    page = browser.post("/classify/worth/", sides, follow=True).content.decode()
    assert "No server set for" in page
    assert (Classifier.objects.count(), told) == (0, [])


@pytest.mark.usefixtures("embedding_server")
def test_what_is_not_there_or_not_yours(
    browser: Client, bobs_browser: Client, alice: User, sides: dict[str, int], told: list[int]
) -> None:
    assert bobs_browser.get("/classify/worth/", sides).status_code == 404
    assert bobs_browser.post("/classify/worth/", sides).status_code == 404
    assert browser.get("/classify/worth/").status_code == 404
    made = factories.classifier(alice, Dataset.objects.get(pk=sides["real"]))
    query = urlencode(sides)
    for trained in (f"{made.pk}", f"{made.pk},{made.pk},0", f"x,{made.pk},{made.pk}"):
        more = "".join(f"&trained={key}" for key in trained.split(","))
        assert browser.get(f"/classify/worth/?{query}{more}").status_code == 404
    assert browser.put("/classify/worth/").status_code == 405
