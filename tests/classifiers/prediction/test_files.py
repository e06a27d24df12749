"""A file classified in the background: in, every row back, out, over the page and the API."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from openpyxl import Workbook
from pytest_django import Settings

from apps import files as apps_files
from apps.classifiers import services
from apps.classifiers.models import Classifier, FilePrediction, FileStatus, Run
from apps.classifiers.prediction import file_queue
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task
from apps.work.services import HeldTask
from tests.classifiers import factories

pytestmark = pytest.mark.django_db(transaction=True)

HEAD = "id,question\n"
TEXTS = ["HELLO THERE GOOD MORNING 71", "what exchange rate do you give for euro amount 72"]
MANY = HEAD + "".join(f"{number},{TEXTS[number % 2]}{number}\n" for number in range(40))


@pytest.fixture
def made(alice: User, embedding_server: Server) -> Classifier:
    return factories.trained(alice)


def predict_file(file_id: int) -> None:
    """Do the file's task as a worker would."""
    task_id = FilePrediction.objects.get(pk=file_id).task_id
    assert task_id is not None
    work.run(task_id)


def send(
    client: Client, made: Classifier, text: str | bytes, name: str = "a.csv", **form: str
) -> Any:
    data = text.encode() if isinstance(text, str) else text
    file = SimpleUploadedFile(name, data)
    return client.post(f"/api/v1/classifiers/{made.pk}/predict-file", {"file": file, **form})


def labelled(client: Client, answer: Any) -> list[dict[str, str]]:
    body = factories.download(client, answer.json()["download"])
    return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"))))


def finished(api: Client, made: Classifier, answer: Any) -> Any:
    assert answer.status_code == 202, answer.content
    predict_file(answer.json()["id"])
    return api.get(f"/api/v1/classifiers/{made.pk}/predict-file/{answer.json()['id']}")


def test_file_prediction_is_queued_and_its_result_downloaded(
    api: Client, made: Classifier, announced: list[int], settings: Settings
) -> None:
    answer = send(api, made, MANY)
    assert answer.json()["status"] == "queued"
    file = FilePrediction.objects.get(pk=answer.json()["id"])
    assert announced[-1] == file.task_id
    url = f"/api/v1/classifiers/{made.pk}/predict-file/{file.pk}"
    assert api.get(f"{url}/download").status_code == 409
    done = finished(api, made, answer)
    assert (done.json()["status"], done.json()["error"]) == ("ready", "")
    assert (done.json()["rows"], done.json()["total"], done.json()["version"]) == (40, 40, 1)
    rows = labelled(api, done)
    assert len(rows) == 40
    assert [row["label"] for row in rows[:2]] == ["hello", "rate"]
    assert [row["row"] for row in rows[:2]] == ["2", "3"]
    for row in rows:
        assert float(row["confidence"]) >= float(row["confidence_2"]) >= float(row["confidence_3"])
        assert {row["label"], row["label_2"], row["label_3"]} == {"card", "hello", "rate"}
    assert not list(Path(settings.CLASSIFIERS_DIR).glob("*.upload"))


def test_every_row_comes_back_also_a_bad_one(api: Client, made: Classifier) -> None:
    text = HEAD + f"1,{TEXTS[0]}\n2,\n3,{'long ' * 1500}\n4,{TEXTS[1]}\n"
    rows = labelled(api, finished(api, made, send(api, made, text, column="question")))
    assert [bool(row["label"]) for row in rows] == [True, False, False, True]
    assert "empty" in rows[1]["note"]
    assert "tokens" in rows[2]["note"]


def test_the_other_columns_come_back(api: Client, made: Classifier) -> None:
    """Whoever sent ids wants them beside the labels; a name of ours stays ours."""
    sent = 'ID,text,label,=x\n007,"HELLO THERE GOOD MORNING 1",old,=1+1\n8,,,\n'
    done = finished(api, made, send(api, made, sent, column="text"))
    [first, second] = labelled(api, done)
    assert (first["ID"], second["ID"]) == ("007", "8")
    assert first["label"] == "hello"
    assert first["label (file)"] == "old"
    assert first["'=x"] == "'=1+1"
    assert second["note"] == "The text is empty."

    done = finished(api, made, send(api, made, sent, column="text", format="jsonl"))
    body = factories.download(api, done.json()["download"]).decode()
    assert [json.loads(line).get("ID") for line in body.splitlines()] == ["007", "8"]


def test_an_excel_file_is_labelled_too(api: Client, made: Classifier) -> None:
    book = Workbook()
    book.active.append(["id", "text"])
    book.active.append([7, "HELLO THERE GOOD MORNING 2"])
    out = io.BytesIO()
    book.save(out)
    done = finished(api, made, send(api, made, out.getvalue(), name="a.xlsx", column="text"))
    [row] = labelled(api, done)
    assert (row["id"], row["label"]) == ("7", "hello")


def test_a_spreadsheet_runs_nothing_of_it(api: Client, made: Classifier) -> None:
    text = HEAD + '1,"=HYPERLINK(""http://x"")"\n2,@SUM(A1)\n3,-2+3\n'
    rows = labelled(api, finished(api, made, send(api, made, text, column="question")))
    assert [row["text"][0] for row in rows] == ["'"] * 3


def test_a_labelled_file_can_be_read_again_as_it_was(
    api: Client, made: Classifier, tmp_path: Path
) -> None:
    text = HEAD + "1,=HELLO THERE\n2,-2+3 rates\n"
    done = finished(api, made, send(api, made, text, column="question"))
    path = tmp_path / "again.csv"
    path.write_bytes(factories.download(api, done.json()["download"]))
    layout = apps_files.detect_layout(path, name=path.name)
    rows = list(
        apps_files.read_checked_rows(path, layout, apps_files.ColumnMapping("text", "label"))
    )
    texts = [row.text for row in rows if isinstance(row, apps_files.ExampleRow)]
    assert texts == ["=HELLO THERE", "-2+3 rates"]


def test_as_json_lines(api: Client, made: Classifier) -> None:
    done = finished(api, made, send(api, made, MANY, format="jsonl"))
    lines = factories.download(api, done.json()["download"]).decode().splitlines()
    assert [json.loads(line)["label"] for line in lines[:2]] == ["hello", "rate"]


def test_the_gates_are_served(api: Client, made: Classifier) -> None:
    path = f"/api/v1/classifiers/{made.pk}/gates"
    body = json.dumps({"unsure": 0.6, "kept": 0.9})
    assert api.put(path, body, content_type="application/json").status_code == 200
    Run.objects.update(thresholds=Run.objects.get().thresholds | {"familiar": 1e6})
    rows = labelled(api, finished(api, made, send(api, made, MANY)))
    assert {row["gate"] for row in rows} == {"none of these"}


def test_thresholds_of_single_labels_are_served(api: Client, made: Classifier) -> None:
    path = f"/api/v1/classifiers/{made.pk}/gates"

    def put(**body: object) -> Any:
        sent = json.dumps({"unsure": 0, "kept": 1, **body})
        return api.put(path, sent, content_type="application/json")

    assert put(labels={"hello": 1}).json() == {"unsure": 0, "kept": 1, "labels": {"hello": 1}}
    assert put().json()["labels"] == {"hello": 1}
    answered = labelled(api, finished(api, made, send(api, made, MANY)))
    assert {row["gate"] for row in answered if row["label"] == "hello"} == {"unsure"}
    assert {row["gate"] for row in answered if row["label"] != "hello"} <= {""}
    assert put(labels={"nowhere": 1}).status_code == 422
    assert put(labels={"hello": 2}).status_code == 422
    assert put(labels={}).json()["labels"] == {}


@pytest.mark.parametrize(
    ("content", "form", "status", "says"),
    [
        (b"", {}, 422, "empty"),
        (b"\x00\x01\x02" * 400, {}, 422, "not a text file"),
        (MANY.encode(), {"column": "nowhere"}, 422, "No column “nowhere”"),
        (MANY.encode(), {"format": "exe"}, 422, "format"),
    ],
)
def test_upload_of_an_unreadable_file_is_refused_at_once(
    api: Client,
    made: Classifier,
    settings: Settings,
    content: bytes,
    form: dict[str, str],
    status: int,
    says: str,
) -> None:
    answer = send(api, made, content, **form)
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    assert not FilePrediction.objects.exists()
    assert not list(Path(settings.CLASSIFIERS_DIR).glob("file-*"))


def test_too_large_is_said(api: Client, made: Classifier, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 100
    assert send(api, made, MANY).status_code == 413
    assert not list(Path(settings.CLASSIFIERS_DIR).glob("file-*"))


def test_an_untrained_classifier_says_so(
    api: Client, alice: User, embedding_server: Server
) -> None:
    answer = send(api, factories.classifier(alice), MANY)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_ready")


def test_another_embedding_model_ends_it_with_the_reason(api: Client, made: Classifier) -> None:
    factories.exchange_embedding_model()
    done = finished(api, made, send(api, made, MANY))
    assert done.json()["status"] == "failed"
    assert "has changed since training" in done.json()["error"]


def test_cancel(api: Client, made: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = send(api, made, MANY).json()["id"]
    url = f"/api/v1/classifiers/{made.pk}/predict-file/{waiting}"
    assert api.post(f"{url}/cancel").status_code == 202
    assert api.get(url).json()["status"] == "cancelled"

    running = FilePrediction.objects.get(pk=send(api, made, MANY).json()["id"])
    real = HeldTask.report

    def report(self: HeldTask, done: int, total: int) -> None:
        services.cancel(running)
        real(self, done, total)

    monkeypatch.setattr(HeldTask, "report", report)
    predict_file(running.pk)
    running.refresh_from_db()
    assert running.status == FileStatus.CANCELLED
    assert not file_queue.upload_path(running).exists()


def test_a_forgotten_file_is_resumed(api: Client, made: Classifier) -> None:
    waiting = send(api, made, MANY).json()["id"]
    Task.objects.update(enqueued_at="2020-01-01T00:00Z")
    assert work.sweep() == [FilePrediction.objects.get(pk=waiting).task_id]


def test_the_page(browser: Client, made: Classifier) -> None:
    url = f"/classify/{made.pk}/files/"
    assert "No files yet" in browser.get(url).content.decode()
    assert (
        browser.post(url, {"file": SimpleUploadedFile("a.csv", MANY.encode())}).status_code == 302
    )
    assert 'hx-trigger="every 1s"' in browser.get(url).content.decode()
    file = FilePrediction.objects.get()
    assert browser.get(f"{url}{file.pk}/download/").status_code == 404
    predict_file(file.pk)
    fragment = browser.get(f"{url}list/").content.decode()
    assert "Download" in fragment
    assert "hx-trigger" not in fragment
    answer = browser.get(f"{url}{file.pk}/download/")
    assert 'filename="a-labelled.csv"' in answer["content-disposition"]
    answer.close()
    body = factories.download(browser, f"{url}{file.pk}/download/")
    assert len(body) == int(answer["content-length"]) > 0
    assert browser.post(f"{url}{file.pk}/remove/").status_code == 302
    assert not FilePrediction.objects.exists()
    assert browser.post(url).status_code == 422
    bad = SimpleUploadedFile("<b>.csv", b"\x00\x01\x02" * 400)
    assert "not a text file" in browser.post(url, {"file": bad}).content.decode()


def test_file_pages_hide_files_of_others(
    bobs_browser: Client, bobs_api: Client, api: Client, made: Classifier
) -> None:
    file = send(api, made, MANY).json()["id"]
    assert send(bobs_api, made, MANY).status_code == 404
    base = f"/api/v1/classifiers/{made.pk}/predict-file/{file}"
    assert bobs_api.get(base).status_code == 404
    assert bobs_api.get(f"{base}/download").status_code == 404
    assert bobs_api.post(f"{base}/cancel").status_code == 404
    for path in ("", "list/", f"{file}/download/"):
        assert bobs_browser.get(f"/classify/{made.pk}/files/{path}").status_code == 404
    for path in (f"{file}/cancel/", f"{file}/remove/"):
        assert bobs_browser.post(f"/classify/{made.pk}/files/{path}").status_code == 404


def test_file_actions_refuse_get(browser: Client, made: Classifier) -> None:
    assert browser.get(f"/classify/{made.pk}/files/1/cancel/").status_code == 405
    assert browser.get(f"/classify/{made.pk}/files/1/remove/").status_code == 405


def test_deleting_the_classifier_removes_its_files(
    api: Client, made: Classifier, settings: Settings
) -> None:
    finished(api, made, send(api, made, MANY))
    send(api, made, MANY)
    services.delete_classifier(made)
    assert list(Path(settings.CLASSIFIERS_DIR).iterdir()) == []
