"""Training runs through the task, on a real embedding server."""

import json
import stat
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.utils import timezone
from pytest_django import Settings

from apps.classifiers import services, tasks
from apps.classifiers.models import Run, Status, TaskKind
from apps.classifiers.training import trainer
from apps.classifiers.training.label_quality.label_rules import LabelOptions
from apps.datasets.models import Dataset
from apps.datasets.services import BeingChanged
from apps.embeddings import canary
from apps.embeddings.services import Vectors
from apps.files import ExampleRow
from apps.llm.client import Client
from apps.servers.models import DefaultServer, Server, Use
from apps.work import services as work
from apps.work.errors import LeaseLost
from apps.work.models import Task, TaskState
from apps.work.services import HeldTask
from tests.classifiers import factories
from tests.datasets.factories import change_task
from tests.llama_process import LlamaProcess
from tests.servers.conftest import server_at
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _server(embedding_server: Server) -> None:
    pass


def run_of(owner: User, rows: list[ExampleRow]) -> Run:
    """A run of the task on these rows, however it ends."""
    run = factories.newest(factories.classifier(owner, factories.dataset(owner, rows)))
    factories.train(run)
    run.refresh_from_db()
    return run


def test_a_dataset_that_is_being_changed_is_not_short_of_examples(alice: User) -> None:
    made = factories.classifier(alice)
    change_task(made.dataset)
    run = factories.newest(made)
    factories.train(run)
    run.refresh_from_db()
    assert (run.status, run.error) == (Status.FAILED, str(BeingChanged()))


def test_run_trains_evaluates_and_becomes_live(alice: User, settings: Settings) -> None:
    made = factories.classifier(alice)
    run = factories.newest(made)
    factories.train(run)
    run.refresh_from_db()
    made.refresh_from_db()
    assert (run.status, run.error) == (Status.READY, "")
    assert made.current_id == run.pk
    assert run.train_rows + run.metrics["rows"] == 36
    assert len(run.test_indices) == run.metrics["rows"] == 6
    assert run.metrics["accuracy"] > run.metrics["majority_baseline"]
    assert [entry["label"] for entry in run.per_class] == ["card", "hello", "rate"]
    assert sum(map(sum, run.confusion)) == 6
    assert run.embedding["sent"] == 36
    assert set(run.seconds) == {"embedding", "fitting", "evaluating"}
    assert set(run.versions) == {"python", "numpy", "scikit-learn"}
    assert run.task is not None
    assert (run.task.state, run.task.lease) == (TaskState.DONE, None)
    for file in Path(settings.CLASSIFIERS_DIR).iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    json.dumps([run.metrics, run.confused_pairs, run.reliability, run.fit])


def test_where_an_address_has_both_the_model_that_embeds_is_asked(
    alice: User, llama: LlamaProcess, llama_embeddings: LlamaProcess
) -> None:
    models = [
        Model("demo", info={"mode": "chat"}),
        Model("vectors", embeddings=True, info={"mode": "embedding"}),
    ]
    with Standin("litellm", llama, embeddings=llama_embeddings, models=models) as proxy:
        server = server_at(proxy)  # which nobody has Reviewed yet
        DefaultServer.objects.filter(use=Use.EMBEDDINGS).update(server=server, model="")
        run = run_of(alice, factories.rows(8))
        assert (run.status, run.error) == (Status.READY, "")
        asked = {asked["model"] for asked in proxy.asked if asked["path"] == "/v1/embeddings"}
    assert asked == {"vectors"}


def test_training_again_embeds_nothing_and_gives_the_same(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.trained(alice)
    first = factories.newest(made)

    real = Client.embed

    async def refuse(self: Client, model: str, texts: Sequence[str]) -> Vectors:
        assert set(texts) <= {*canary.TEXTS, *canary.NEIGHBOURS}, "a text was sent again"
        return await real(self, model, texts)

    monkeypatch.setattr(Client, "embed", refuse)
    factories.train(services.start_run(made))
    second = factories.newest(made)
    assert (second.number, second.status) == (2, Status.READY)
    assert second.embedding["sent"] == 0
    assert second.data_hash == first.data_hash
    assert second.metrics == first.metrics
    assert second.test_indices == first.test_indices


def test_its_own_test_rows_are_never_trained_on(alice: User) -> None:
    run = run_of(alice, factories.rows(8) + factories.rows(3, split="test", start=50))
    assert run.error == ""
    assert (run.train_rows, run.metrics["rows"]) == (24, 9)
    assert run.test_indices == list(range(24, 33))
    assert "rows marked as test" in run.test_source


def test_a_test_set_judges(alice: User) -> None:
    train = factories.dataset(alice, factories.rows(8) + factories.rows(2, split="test", start=90))
    test = factories.dataset(alice, [*factories.rows(4, start=50), *factories.rows(1)], "Held")
    made = factories.trained(alice, train, test_dataset=test)
    run = factories.newest(made)
    assert (run.train_rows, run.metrics["rows"]) == (24, 15)
    assert "Held" in run.test_source
    assert any("6 rows that the dataset marks as test are not used" in note for note in run.notes)
    assert any("3 of the 15 test rows are also in the" in note for note in run.notes)


ONE_LABEL = [ExampleRow(f"text {number}", "only") for number in range(10)]
ONLY_STRANGE = [*ONE_LABEL, *[ExampleRow(f"strange {number}", "oos") for number in range(10)]]
RARE = [*factories.rows(5), ExampleRow("a rare thing", "rare")]
COPIES = [*factories.rows(5), *[ExampleRow("the same text", "copied")] * 5]
UNSEEN = [*factories.rows(5), ExampleRow("new", "unseen", "test"), *factories.rows(1, split="test")]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (ONE_LABEL, "only one label to train, “only”"),
        (ONLY_STRANGE, "only one label to train, “only”"),
        ([], "Label some rows first"),
    ],
)
def test_data_that_cannot_be_trained_is_refused_before_it_is_queued(
    alice: User, browser: Browser, api: Browser, rows: list[ExampleRow], says: str
) -> None:
    data = factories.dataset(alice, rows or ONE_LABEL)
    if not rows:
        data.examples.update(label="")
        Dataset.objects.update(label_counts={}, unlabelled=10)
    page = browser.post("/classify/new/", {"name": "x", "dataset": data.pk})
    assert page.status_code == 422
    assert says in page.content.decode()
    body = json.dumps({"name": "x", "dataset": data.pk})
    answer = api.post("/api/v1/classifiers", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "cannot_train")
    assert says in answer.json()["detail"]
    assert not Run.objects.exists()


def test_data_that_cannot_be_trained_any_more_is_refused_too(
    alice: User, browser: Browser, api: Browser
) -> None:
    made = factories.classifier(alice)
    Run.objects.update(status=Status.CANCELLED)
    Dataset.objects.update(label_counts={})
    answer = api.post(f"/api/v1/classifiers/{made.pk}/train")
    assert (answer.status_code, answer.json()["code"]) == (422, "cannot_train")
    page = browser.post(f"/classify/{made.pk}/train/", follow=True)
    assert "Label some rows first" in page.content.decode()
    assert made.runs.count() == 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (factories.rows(5, split="test"), "No row to train on has a label"),
        ([*ONE_LABEL, ExampleRow("rare", "one")], "only one label to train, “only”"),
    ],
)
def test_data_that_does_not_do_says_what_is_missing(
    alice: User, rows: list[ExampleRow], says: str
) -> None:
    run = run_of(alice, rows)
    assert run.status == Status.FAILED
    assert says in run.error
    assert run.finished is not None


@pytest.mark.parametrize(("rows", "label"), [(RARE, "rare"), (COPIES, "copied")])
def test_rare_labels_are_left_out_with_a_note(
    alice: User, rows: list[ExampleRow], label: str
) -> None:
    run = run_of(alice, rows)
    assert run.error == ""
    assert [entry["label"] for entry in run.per_class] == ["card", "hello", "rate"]
    assert any(f"1 label with fewer than 2 different training texts (“{label}”: 1)" in note
               and "left out" in note for note in run.notes)  # fmt: skip
    assert run.train_rows + run.metrics["rows"] == 15


def test_rare_labels_may_be_pooled_or_stop_the_run(alice: User) -> None:
    rows = factories.rows(6) + [ExampleRow(f"§ {n}", f"rare {n // 2}", "") for n in range(6)]
    data = factories.dataset(alice, rows)
    pooled = factories.trained(alice, data, choices=LabelOptions("pool", rare_below=3))
    run = factories.newest(pooled)
    assert [entry["label"] for entry in run.per_class] == ["card", "hello", "other", "rate"]
    assert any("3 labels" in note and "pooled as “other”" in note for note in run.notes)
    made = factories.classifier(alice, data, choices=LabelOptions("fail", rare_below=3))
    factories.train(factories.newest(made))
    assert "There are 3 labels with fewer than 3" in factories.newest(made).error


def test_test_rows_of_labels_nobody_trains_are_wrong_and_counted_apart(alice: User) -> None:
    run = run_of(alice, UNSEEN)
    assert run.error == ""
    assert (run.metrics["rows"], run.metrics["unseen_rows"]) == (3, 1)
    right = round(run.metrics["accuracy"] * 3)
    assert run.metrics["accuracy_with_unseen"] == pytest.approx(right / 4)
    assert any("1 test row with labels that are never trained (“unseen”: 1)" in note
               for note in run.notes)  # fmt: skip


def test_what_is_wrong_with_the_labels_is_said_before_anything_is_embedded(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: Client, model: str, texts: Sequence[str]) -> None:
        raise AssertionError("a text was sent")

    monkeypatch.setattr(Client, "embed", refuse)
    assert "only one label" in run_of(alice, [*ONE_LABEL, ExampleRow("rare", "one")]).error


def test_a_validation_split_judges_where_there_is_no_test(alice: User) -> None:
    rows = factories.rows(6, split="train") + factories.rows(3, split="validation", start=50)
    data = factories.dataset(alice, rows)
    run = factories.newest(factories.trained(alice, data))
    assert (run.train_rows, run.metrics["rows"]) == (18, 9)
    assert "validation" in run.test_source
    assert any("validation rows are the test set" in note for note in run.notes)
    data.refresh_from_db()
    assert data.split_counts == {"train": 18, "validation": 9}
    assert data.version == 0


def test_marks_that_were_given_are_not_changed(alice: User) -> None:
    data = factories.dataset(alice, factories.rows(10, split="train"))
    made = factories.trained(alice, data)
    first = factories.newest(made)
    assert first.train_rows + first.metrics["rows"] == 30
    assert "held out for this run" in first.test_source
    data.refresh_from_db()
    assert (data.split_counts, data.version) == ({"train": 30}, 0)
    factories.train(services.start_run(made))
    assert factories.newest(made).test_indices == first.test_indices


def test_validation_rows_that_are_trained_on_are_said(alice: User) -> None:
    rows = factories.rows(4, split="train") + factories.rows(2, split="validation", start=50)
    run = run_of(alice, rows + factories.rows(2, split="test", start=80))
    assert run.train_rows == 18
    assert any("6 validation rows are trained on" in note for note in run.notes)


def test_rows_held_out_before_are_trained_on_with_another_test_dataset(alice: User) -> None:
    data = factories.dataset(alice)
    first = factories.newest(factories.trained(alice, data))
    assert any("20% of each label is now marked as test" in note for note in first.notes)
    test = factories.dataset(alice, factories.rows(4, start=50), "Held")
    run = factories.newest(factories.trained(alice, data, test_dataset=test))
    assert (run.train_rows, run.metrics["rows"]) == (36, 12)
    assert any("6 rows that an earlier run had held out" in note for note in run.notes)


def test_a_label_called_oos_may_be_trained(alice: User) -> None:
    """In a shop it is out of stock."""
    rows = factories.rows(6) + [ExampleRow(f"sold out {number}", "OOS") for number in range(6)]
    data = factories.dataset(alice, rows)
    aside = factories.newest(factories.trained(alice, data))
    assert [entry["label"] for entry in aside.per_class] == ["card", "hello", "rate"]
    assert any("6 rows labelled out of scope (“OOS”)" in note for note in aside.notes)
    run = factories.newest(factories.trained(alice, data, choices=LabelOptions(train_oos=True)))
    assert [entry["label"] for entry in run.per_class] == ["OOS", "card", "hello", "rate"]
    assert run.fit["strange_rows"] == 0
    assert not any("out of scope" in note for note in run.notes)


def test_texts_that_are_too_long_are_left_out_and_listed(alice: User) -> None:
    run = run_of(alice, [*factories.rows(), ExampleRow("long " * 1500, "card", None, "row 38")])
    assert run.status == Status.READY
    (left_out,) = run.skipped_rows
    assert left_out["row"] == "row 38"
    assert "7,501 tokens long" in left_out["reason"]
    assert run.train_rows + run.metrics["rows"] == 36


def test_a_server_that_is_gone_fails_the_run_with_a_sentence(alice: User) -> None:
    made = factories.classifier(alice)
    Server.objects.update(base_url="http://127.0.0.1:9/v1")
    run = factories.newest(made)
    factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert "Check that it is running" in run.error


def test_a_second_press_of_train_is_harmless(alice: User) -> None:
    made = factories.classifier(alice)
    first = factories.newest(made)
    assert services.start_run(made) == first
    factories.train(first)
    factories.train(first)  # a message that came twice
    assert made.runs.count() == 1
    assert Task.objects.get(kind=TaskKind.TRAINING).attempts == 1


def test_a_queued_run_is_cancelled_at_once(alice: User) -> None:
    run = factories.newest(factories.classifier(alice))
    services.cancel(run)
    run.refresh_from_db()
    assert run.status == Status.CANCELLED
    factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


@pytest.mark.parametrize("stage", [Status.EMBEDDING, Status.FITTING])
def test_a_running_run_is_cancelled_at_its_next_step(
    alice: User, monkeypatch: pytest.MonkeyPatch, stage: Status
) -> None:
    made = factories.classifier(alice)
    real = HeldTask.check

    def check(self: HeldTask) -> None:
        run = factories.newest(made)
        if run.status == stage:
            services.cancel(run)
        real(self)

    monkeypatch.setattr(HeldTask, "check", check)
    run = factories.newest(made)
    factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.CANCELLED
    made.refresh_from_db()
    assert made.current is None
    assert services.start_run(made).number == 2


def test_a_run_whose_worker_died_is_resumed(alice: User, announced: list[int]) -> None:
    run = factories.newest(factories.classifier(alice))
    assert announced == [run.task_id]
    assert run.task_id is not None
    dead = work.claim(run.task_id)
    assert dead is not None
    work.sweep()
    assert announced == [run.task_id]  # its lease is alive
    factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.QUEUED

    long_ago = timezone.now() - timedelta(minutes=5)
    Task.objects.update(lease_until=long_ago, enqueued_at=long_ago)
    work.sweep()
    work.sweep()  # announced once, not every time beat comes round
    assert announced == [run.task_id] * 2
    factories.train(run)
    run = factories.newest(run.classifier)
    assert run.task is not None
    assert (run.status, run.task.attempts) == (Status.READY, 2)
    with pytest.raises(LeaseLost), dead.fence():  # it comes back and may change nothing
        Run.objects.update(status=Status.FITTING)
    run.refresh_from_db()
    assert run.status == Status.READY


def test_a_run_that_kills_its_workers_ends(alice: User) -> None:
    run = factories.newest(factories.classifier(alice))
    Task.objects.update(attempts=3)
    factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert "crashed 3 times" in run.error


def test_messages_of_an_older_version_still_train(alice: User) -> None:
    run = factories.newest(factories.classifier(alice))
    tasks.resume_training()  # nothing to do: the sweep of all tasks resumes runs
    tasks.train_run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.error) == (Status.READY, "")


def test_a_bug_fails_the_run_and_is_logged(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = factories.newest(factories.classifier(alice))

    def broken(*given: object, **more: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(trainer, "fit", broken)
    with pytest.raises(RuntimeError):
        factories.train(run)
    run.refresh_from_db()
    assert run.status == Status.FAILED
    assert "boom" not in run.error
    assert "Train again" in run.error


def test_deleting_a_classifier_removes_its_files(alice: User, settings: Settings) -> None:
    made = factories.trained(alice)
    assert len(list(Path(settings.CLASSIFIERS_DIR).iterdir())) == 5
    services.delete_classifier(made)
    assert list(Path(settings.CLASSIFIERS_DIR).iterdir()) == []


def test_a_classifier_survives_its_dataset(alice: User) -> None:
    made = factories.trained(alice)
    assert made.dataset is not None
    made.dataset.delete()
    made.refresh_from_db()
    assert made.current is not None
    factories.train(services.start_run(made))
    assert "was deleted" in factories.newest(made).error
