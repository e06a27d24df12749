"""What the report finds, and which rows it means."""

import csv
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from apps import files
from apps.datasets import hooks, services
from apps.datasets.hooks import TextLimit
from apps.datasets.models import Dataset
from apps.datasets.rows import reports
from apps.datasets.rows.reports import Issue
from apps.datasets.services import NearPair
from tests.datasets.factories import create, create_many

pytestmark = pytest.mark.django_db

BENCH = Path(__file__).parent.parent.parent.parent / "bench" / "data"


@pytest.fixture
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "text_limit_providers", [lambda: TextLimit("mini", 4)])


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [
        ("x", "Card lost"),
        ("X ", "card_lost", "test"),  # repeated, another label, on the other side
        ("y", "other", "test"),
        ("y", "other", "test"),  # repeated, on one side
        ("z", "other"),
        ("a text of more than sixteen characters", ""),
        ("x", ""),  # no label is no conflict
    ]
    return create(alice, rows)


@pytest.mark.usefixtures("_limit")
def test_report_counts_duplicates_conflicts_and_leaks(dataset: Dataset) -> None:
    found = services.report(dataset)
    assert found["repeated"] == 3
    assert found["duplicate_rows"] == 5
    assert (found["conflict_texts"], found["conflict_rows"]) == (1, 3)
    assert found["leak_rows"] == 1
    assert found["long_rows"] == 1
    assert found["limit"] == {"model": "mini", "tokens": 4, "characters": 16}
    assert [entry["label"] for entry in found["few"]] == ["Card lost", "card_lost", "other"]
    assert found["variants"] == [
        [{"label": "Card lost", "count": 1}, {"label": "card_lost", "count": 1}]
    ]
    assert not found["one_label"]
    assert not found["numbers"]


@pytest.mark.usefixtures("_limit")
@pytest.mark.parametrize(
    ("issue", "places"),
    [
        (Issue.DUPLICATE, [0, 1, 2, 3, 6]),
        (Issue.CONFLICT, [0, 1, 6]),
        (Issue.LEAK, [0, 1, 6]),
        (Issue.LONG, [5]),
        (Issue.FEW, [0, 1, 2, 3, 4]),
        (Issue.NEAR, [2, 4]),
    ],
)
def test_the_rows_of_an_issue(dataset: Dataset, issue: Issue, places: list[int]) -> None:
    services.store_near_duplicates(
        services.snapshot(dataset), [NearPair(2, 4, 0.98)], model="mini", threshold=0.97
    )
    rows = reports.rows_with(dataset, issue).order_by("index")
    assert list(rows.values_list("index", flat=True)) == places


def test_report_is_cached_until_a_row_changes(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    dataset = create_many(alice, 50)
    services.report(dataset)
    dataset.refresh_from_db()
    with django_assert_num_queries(0):
        assert services.report(dataset)["version"] == 0
    services.merge_labels(dataset, ["label 0", "label 1"], "label 2")
    assert services.report(dataset)["one_label"]


@pytest.mark.parametrize(
    ("labels", "groups"),
    [
        ({"a": 1, "b": 2}, []),
        ({"Card": 2, "card": 1, "CARD": 5}, [["CARD", "Card", "card"]]),
        ({"lost card": 1, "lost_card": 1, "lost-card": 3, "lostcards": 1},
         [["lost-card", "lost card", "lost_card"]]),
        ({"straße": 1, "STRASSE": 1}, [["STRASSE", "straße"]]),
    ],
)  # fmt: skip
def test_labels_that_differ_only_in_case_or_spacing(
    labels: dict[str, int], groups: list[list[str]]
) -> None:
    found = [[entry["label"] for entry in group] for group in reports.label_variants(labels)]
    assert found == groups


def banking(owner: User, split: str) -> Dataset:
    path = BENCH / f"banking77_{split}.csv"
    layout = files.detect_layout(path)
    rows = files.read_checked_rows(path, layout, files.ColumnMapping("text", "label"))
    return services.create_dataset(owner=owner, name=split, rows=rows, origin=path.name)


def test_banking77_has_seven_test_texts_that_are_trained_on(alice: User) -> None:
    leaks = services.exact_leaks(banking(alice, "train"), banking(alice, "test"))
    assert len(leaks) == 7  # one differs in white space


def test_sms_spam_has_415_duplicates(alice: User) -> None:
    with (Path(__file__).parents[1] / "data" / "sms_spam.csv").open(newline="") as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    assert services.report(create(alice, rows))["repeated"] == 415
