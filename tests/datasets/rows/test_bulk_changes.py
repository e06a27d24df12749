"""Changes of many rows: in pieces, by a worker, undone whole, never two at a time."""

import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.datasets import services
from apps.datasets.imports import create as create_module
from apps.datasets.imports import dataset_writer
from apps.datasets.models import Dataset, Revision, TaskKind
from apps.datasets.rows import (
    bulk_changes,
    bulk_edits,
    change_plans,
    edits,
    removal,
)
from apps.datasets.rows import (
    steps as row_steps,
)
from apps.datasets.rows.browsing import Filters
from apps.files import ExampleRow
from apps.work import services as work
from apps.work.models import Task
from tests.datasets.factories import create, create_many, shown, work_on
from tests.datasets.rows.test_edits import check_counts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_steps, bulk_changes, bulk_edits, change_plans, edits):
        monkeypatch.setattr(module, "CHUNK_ROWS", 10)


@pytest.fixture
def by_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_edits, "MAX_WAITED_ROWS", 0)


CHANGES: dict[str, Callable[[Dataset], services.Changed]] = {
    "merge": lambda dataset: services.merge_labels(dataset, ["label 0"], "label 1"),
    "rename": lambda dataset: services.merge_labels(dataset, ["label 0"], "new"),
    "deduplicate": services.delete_duplicates,
    "split": lambda dataset: services.make_split(dataset, seed=2),
    "label": lambda dataset: services.change_matching(
        dataset, Filters(label="label 0"), "label", "label 2"
    ),
    "move": lambda dataset: services.change_matching(dataset, Filters(search="1"), "split", "test"),
    "delete": lambda dataset: services.change_matching(dataset, Filters(search="1"), "delete"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_in_pieces_and_undone_in_pieces(alice: User, change: str) -> None:
    dataset = create(alice, [(f"text {n % 51}", f"label {n % 3}") for n in range(120)])
    before, ref = shown(dataset), services.snapshot(dataset)
    with CaptureQueriesContext(connection) as queries:
        revision = CHANGES[change](dataset)
    assert isinstance(revision, Revision)
    begun = [query for query in queries.captured_queries if query["sql"].startswith("BEGIN")]
    assert len(begun) >= revision.rows // 10
    check_counts(dataset)
    assert dataset.revisions.get().rows == revision.rows > 10
    after = shown(dataset)
    assert after != before
    assert [row.label for row in services.read_snapshot(ref)] == [row[2] for row in before]
    services.undo(dataset)
    check_counts(dataset)
    assert shown(dataset) == before
    assert services.pending_change(dataset) is None


@pytest.mark.usefixtures("by_worker")
@pytest.mark.parametrize("change", CHANGES)
def test_by_a_worker(alice: User, change: str) -> None:
    dataset = create(alice, [(f"text {n % 51}", f"label {n % 3}") for n in range(120)])
    before = shown(dataset)
    waiting = CHANGES[change](dataset)
    assert isinstance(waiting, services.PendingChange)
    assert shown(dataset) == before
    with pytest.raises(services.BeingChanged):
        services.relabel_rows(dataset, [0], "other")
    work_on(TaskKind.CHANGE, dataset)
    work_on(TaskKind.CHANGE, dataset)  # told twice: done once
    check_counts(dataset)
    assert dataset.version == 1
    assert shown(dataset) != before
    undoing = services.undo(dataset)
    assert isinstance(undoing, services.PendingChange)
    work_on(TaskKind.CHANGE, dataset)
    check_counts(dataset)
    assert shown(dataset) == before


def test_many_rows_are_added_in_pieces(alice: User) -> None:
    dataset = create_many(alice, 5)
    rows = [ExampleRow(f"new {n}", "label 0") for n in range(35)]
    revision, rejected = services.add_rows(dataset, [*rows, ExampleRow(" ", "x")])
    assert revision is not None
    assert (revision.rows, len(rejected)) == (35, 1)
    assert [index for index, *_ in shown(dataset)] == list(range(40))
    check_counts(dataset)
    services.undo(dataset)
    check_counts(dataset)
    assert dataset.rows == 5


class Killed(BaseException):
    pass


def dying(at: int) -> Callable[..., None]:
    """Writes so many pieces, then dies without a word."""
    write, seen = row_steps.record_steps, iter(range(at))

    def die(*args: Any) -> None:
        if next(seen, None) is None:
            raise Killed
        write(*args)

    return die


@pytest.mark.usefixtures("by_worker")
def test_what_a_dead_worker_left_is_taken_back_and_done_again(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = create_many(alice)
    before, ref = shown(dataset), services.snapshot(dataset)
    waiting = services.merge_labels(dataset, ["label 0"], "label 1")
    assert isinstance(waiting, services.PendingChange)
    with monkeypatch.context() as patch:
        patch.setattr(row_steps, "record_steps", dying(2))
        with pytest.raises(Killed):
            work_on(TaskKind.CHANGE, dataset)
    dataset.refresh_from_db()
    assert dataset.version == 0
    assert services.snapshot(dataset) == ref  # half of it is no version
    assert services.last_undoable(dataset) is None
    assert work.sweep() == []
    past = timezone.now() - timedelta(minutes=5)
    Task.objects.update(lease_until=past, enqueued_at=past)
    assert work.sweep() == [Task.objects.get().pk]
    work_on(TaskKind.CHANGE, dataset)
    check_counts(dataset)
    assert dataset.label_counts == {"label 1": 80, "label 2": 40}
    undoing = services.undo(dataset)
    assert isinstance(undoing, services.PendingChange)
    work_on(TaskKind.CHANGE, dataset)
    assert shown(dataset) == before


def test_what_fails_is_taken_back_at_once(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = create_many(alice)
    before = shown(dataset)
    monkeypatch.setattr(row_steps, "record_steps", dying(2))
    with pytest.raises(Killed):
        services.merge_labels(dataset, ["label 0"], "label 1")
    assert shown(dataset) == before
    assert not Revision.objects.exists()
    assert services.pending_change(dataset) is None


@pytest.mark.usefixtures("by_worker")
def test_a_worker_says_why_it_cannot(alice: User, client: Client) -> None:
    dataset = create(alice, [("one", "a"), ("two", "b")])
    client.force_login(alice)
    client.post(f"/datasets/{dataset.pk}/split/")
    page = client.get(f"/datasets/{dataset.pk}/").content.decode()
    assert "Changing rows" in page
    work_on(TaskKind.CHANGE, dataset)
    page = client.get(f"/datasets/{dataset.pk}/").content.decode()
    assert "The last change failed and was undone. Each label has only one text" in page
    services.relabel_rows(dataset, [0], "a")  # changes nothing
    assert services.pending_change(dataset) is not None
    services.relabel_rows(dataset, [0], "c")  # what failed is in nobody's way
    page = client.get(f"/datasets/{dataset.pk}/").content.decode()
    assert "The last change failed" not in page


@pytest.mark.usefixtures("by_worker")
@pytest.mark.parametrize(
    ("label", "words"), [("label 0", "The rows were changed."), ("x", "No rows were changed.")]
)
def test_the_page_says_whether_rows_were_changed(
    alice: User, client: Client, label: str, words: str
) -> None:
    dataset = create_many(alice)
    client.force_login(alice)
    services.relabel_rows(dataset, [0], "other")
    services.change_matching(dataset, Filters(label=label), "split", "test")
    page = client.get(f"/datasets/{dataset.pk}/").content.decode()
    [poll] = re.findall(rf'hx-get="(/datasets/{dataset.pk}/change/[^"]*)"', page)
    shown_again = client.get(poll).content.decode()
    assert poll in shown_again
    work_on(TaskKind.CHANGE, dataset)
    ended = client.get(poll, follow=True).content.decode()
    assert words in ended
    others = {"The rows were changed.", "No rows were changed."} - {words}
    assert not any(other in ended for other in others)


@pytest.mark.usefixtures("by_worker")
def test_over_the_api(alice: User, api: Client) -> None:
    dataset = create_many(alice)
    url = f"/api/v1/datasets/{dataset.pk}"
    assert api.get(f"{url}/change").status_code == 204
    for odd in ("a\0b", "\ud800"):
        for path, body in (
            ("examples/change-matching", {"label": odd, "action": "delete"}),
            ("examples/change-matching", {"action": "label", "value": odd}),
            ("merge-labels", {"labels": [odd], "into": "label 0"}),
        ):
            answer = api.post(f"{url}/{path}", body, content_type="application/json")
            assert answer.status_code == 422, answer.content
    body = {"q": "text 1", "action": "delete"}
    answer = api.post(f"{url}/examples/change-matching", body, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"]) == (202, "matching")
    for busy in (
        api.post(f"{url}/undo"),
        api.delete(f"/api/v1/examples/{dataset.examples.all()[0].pk}"),
    ):
        assert (busy.status_code, busy.json()["code"]) == (409, "being_changed")
    assert api.get(f"{url}/change").json()["error"] == ""
    work_on(TaskKind.CHANGE, dataset)
    assert not dataset.examples.filter(text__contains="text 1").exists()
    assert dataset.examples.exists()
    assert api.post(f"{url}/undo").status_code == 202


def test_marks_that_were_given_stay(alice: User) -> None:
    rows = [(f"text {n}", f"label {n % 2}", ("train", "validation", "")[n % 3]) for n in range(60)]
    dataset = create(alice, [*rows, ("Text 1", "label 1"), ("text 0", "label 0")])
    before = {index: split for index, *_, split in shown(dataset)}
    services.make_split(dataset)
    after = {index: split for index, *_, split in shown(dataset)}
    assert all(after[index] == split for index, split in before.items() if split)
    assert after[60] == "validation"  # as its text
    assert after[61] == "train"
    assert dataset.test_rows == 4
    marked = create(alice, [(f"text {n}", f"l{n % 2}", "train") for n in range(9)])
    with pytest.raises(ValueError, match="All rows have a split already, and none is test"):
        services.make_split(marked)


def test_all_rows_that_match_on_the_page(alice: User, client: Client) -> None:
    dataset = create_many(alice, 130, labels=2)
    client.force_login(alice)
    page = client.get(f"/datasets/{dataset.pk}/?label=label+0").content.decode()
    assert "All rows that match the filter" in page
    chosen = {"matching": "label=label+0", "action": "label", "to_label": "other"}
    client.post(f"/datasets/{dataset.pk}/edit/", chosen)
    dataset.refresh_from_db()
    assert dataset.label_counts == {"other": 65, "label 1": 65}
    client.post(f"/datasets/{dataset.pk}/merge/", {"label": ["other"], "into": "renamed"})
    dataset.refresh_from_db()
    assert dataset.label_counts == {"renamed": 65, "label 1": 65}
    client.post(f"/datasets/{dataset.pk}/merge/", {"into": "renamed"})
    assert dataset.revisions.count() == 2


@pytest.fixture
def postgres() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite lets one transaction write at a time")


@pytest.mark.usefixtures("postgres")
@pytest.mark.parametrize("deleting", [True, False])
def test_two_changes_of_one_row_at_once(alice: User, deleting: bool) -> None:
    """Each sees what the other left, and every version can be Reprocessed."""
    dataset = create_many(alice, 30)
    barrier = threading.Barrier(4)

    def change(number: int) -> None:
        try:
            barrier.wait()
            for turn in range(5):
                if deleting:
                    services.delete_rows(dataset, [turn])
                else:
                    services.relabel_rows(dataset, [0, 1], f"label {number} {turn}")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=change, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_counts(dataset)
    assert dataset.rows == (25 if deleting else 30)
    changed: dict[int, Any] = {}
    for revision in dataset.revisions.order_by("number"):
        for row in revision.changes.all():
            assert row.index not in changed or changed[row.index] == row.before
            changed[row.index] = row.after
    while services.undo(dataset) is not None:
        check_counts(dataset)
    assert [label for _, _, label, _ in shown(dataset)] == [f"label {n % 3}" for n in range(30)]


def test_a_dataset_comes_and_goes_in_pieces(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_writer, "BATCH_ROWS", 10)
    monkeypatch.setattr(removal, "PIECE_ROWS", 10)
    rows = [ExampleRow(f"text {n}", f"label {n % 2}") for n in range(60)]
    seen: list[int] = []

    def looked_at() -> Iterator[ExampleRow]:
        for row in rows:
            seen.append(Dataset.objects.owned_by(alice).count())
            yield row

    with CaptureQueriesContext(connection) as queries:
        dataset = services.create_dataset(owner=alice, name="x", rows=looked_at(), origin="x")
    assert sum(query["sql"].startswith("BEGIN") for query in queries.captured_queries) >= 6
    assert set(seen) == {0}
    services.merge_labels(dataset, ["label 0"], "label 1")
    with CaptureQueriesContext(connection) as queries:
        removal.remove_dataset(dataset)
    deleted = [q["sql"] for q in queries.captured_queries if q["sql"].startswith("DELETE")]
    assert len(deleted) >= 6 + 3
    assert not Dataset.objects.exists()


def test_half_a_dataset_does_not_stay(alice: User) -> None:
    def breaking() -> Iterator[ExampleRow]:
        for n in range(1_500):
            yield ExampleRow(f"text {n}", "a")
        raise Killed

    with pytest.raises(Killed):
        services.create_dataset(owner=alice, name="x", rows=breaking(), origin="x")
    assert not Dataset.objects.exists()


def test_half_a_dataset_of_a_killed_process_is_removed_by_a_worker(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object) -> None:
        raise Killed

    monkeypatch.setattr(dataset_writer.DatasetWriter, "finish", killed)
    monkeypatch.setattr(create_module, "finish_removal", lambda held: None)
    with pytest.raises(Killed):
        create_many(alice, 30)
    left = Dataset.objects.get()
    work_on(TaskKind.REMOVAL, left)
    assert left.examples.count() == 30  # the process may still live
    Task.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    work_on(TaskKind.REMOVAL, left)
    assert not Dataset.objects.exists()
    assert not Task.objects.exists()
