"""A classifier that leaves, and one that comes: the same answers, and nothing that could run."""

import fcntl
import io
import json
import pickle  # noqa: TID251 - to see it refused
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape
from pytest_django import Settings

from apps.classifiers.errors import BadFile
from apps.classifiers.models import Classifier, TaskKind
from apps.classifiers.prediction import predictor_file
from apps.classifiers.prediction.predictor import ModelCard, Predictor
from apps.classifiers.transfer import convert, exports, imports
from apps.embeddings.services import Preparation
from apps.files import ExampleRow
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task
from tests.classifiers import factories
from tests.llama_process import LlamaProcess


def made_up(labels: int = 3, dimensions: int = 8) -> Predictor:
    random = np.random.default_rng(0)
    return Predictor(
        ModelCard([f"label {n}" for n in range(labels)], dimensions, 1.3, "model", "f" * 64, {}),
        random.normal(size=(labels, dimensions)).astype(np.float32),
        random.normal(size=labels).astype(np.float32),
    )


def card_for(chosen: Predictor) -> dict[str, Any]:
    card = chosen.card
    return {
        "format": exports.FORMAT,
        "name": "Made up",
        "labels": card.labels,
        "dimensions": card.dimensions,
        "temperature": card.temperature,
        "embedding_model": card.embedding_model,
        "embedding_fingerprint": card.embedding_fingerprint,
        "preparation": {},
        "gates": {"unsure": 0.4, "kept": 0.99, "max_logit": -1.0},
        "metrics": {"accuracy": 0.9, "majority_label": "label 1", "nonsense": "<b>"},
        "trained_on": {"rows": 12},
    }


@pytest.mark.parametrize("labels", [2, 5])
def test_skops_gives_the_same_without_trusting_anything(labels: int) -> None:
    import skops.io

    chosen = made_up(labels)
    data = convert.as_skops(chosen)
    assert skops.io.get_untrusted_types(data=data) == []
    vectors = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
    loaded = skops.io.loads(data, trusted=[])
    assert np.allclose(loaded.predict_proba(vectors), chosen.probabilities(vectors), atol=1e-5)
    assert loaded.classes_.tolist() == chosen.card.labels


def test_onnx_gives_the_same() -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    chosen = made_up(5)
    model = onnx.load_from_string(convert.as_onnx(chosen))
    vectors = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
    logits, probabilities = ReferenceEvaluator(model).run(None, {"vectors": vectors})
    assert np.allclose(logits, chosen.logits(vectors), atol=1e-5)
    assert np.allclose(probabilities, chosen.probabilities(vectors), atol=1e-5)
    assert json.loads(model.metadata_props[0].value) == chosen.card.labels


@pytest.mark.parametrize("write", [exports.as_json, exports.as_npz])
def test_there_and_back_changes_nothing(write: Any) -> None:
    chosen = made_up()
    read, told = imports.read(write(card_for(chosen), chosen))
    assert np.array_equal(read.weights, chosen.weights)
    assert np.array_equal(read.bias, chosen.bias)
    assert read.card.labels == chosen.card.labels
    assert told["name"] == "Made up"
    assert told["metrics"] == {"accuracy": 0.9, "majority_label": "label 1"}


class _Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (print, ("it ran",))


def npz(**arrays: Any) -> bytes:
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


def changed(**values: Any) -> bytes:
    chosen = made_up()
    data: dict[str, Any] = json.loads(exports.as_json(card_for(chosen), chosen))
    return json.dumps(data | values).encode()


BOMB_LIMIT = 4 * 1024**2


def bomb() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("weights.npy", "bias.npy", "card.npy"):
            archive.writestr(name, b"\0" * (BOMB_LIMIT // 2))
    return data.getvalue()


OBJECTS = npz(weights=np.asarray([_Evil()], dtype=object), bias=np.zeros(1), card=np.zeros(1))
BAD: list[tuple[bytes, str]] = [
    (b"", "not JSON or NPZ"),
    (b"[1, 2]", "not a classifier"),
    (b"{}", "not a classifier"),
    (b"[" * 200_000, "not JSON or NPZ"),
    (pickle.dumps(_Evil()), "pickle"),
    (OBJECTS, "damaged"),
    (npz(weights=np.zeros(3)), "not a classifier"),
    (b"PK\x03\x04garbage", "damaged"),
    (changed(dimensions=9), "not as described"),
    (changed(dimensions=True), "dimensions"),
    (changed(labels=["one"]), "2 to 100,000 labels"),
    (changed(labels=["one", "two", "two"]), "labels"),
    (changed(labels=["one", "two", 3]), "label"),
    (changed(labels=["one", "two", "x" * 500]), "longer"),
    (changed(temperature=0), "temperature"),
    (changed(temperature="hot"), "damaged"),
    (changed(embedding_model=7), "name of the embedding model"),
    (changed(arrays={}), "damaged"),
    (changed(arrays={"weights": {"dtype": "|O", "shape": [3, 8], "base64": ""}}), "do not match"),
]


@pytest.mark.parametrize(
    ("data", "says"), BAD, ids=[f"{n}-{says}" for n, (_, says) in enumerate(BAD)]
)
def test_bad_files_are_refused_with_a_reason(
    data: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadFile, match=says):
        imports.read(data)
    assert "it ran" not in capsys.readouterr().out


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MOST_BYTES", BOMB_LIMIT)
    with pytest.raises(BadFile, match="too large"):
        imports.read(bomb())


def test_an_archive_is_made_piece_by_piece() -> None:
    chosen = made_up()
    tests = ([(f"text {start + n}", "label 1") for n in range(100)] for start in range(0, 500, 100))
    converted = {"skops": b"some", "onnx": b"other"}
    archive = exports.as_zip(full_card(chosen), chosen, converted, tests, "http://localhost/v1")
    assert len(next(archive)) > 1_000
    assert next(tests)[0] == ("text 0", "label 1"), "rows are not asked for before they are sent"
    rest = list(exports.as_zip(full_card(chosen), chosen, converted, tests, "http://localhost/v1"))
    with zipfile.ZipFile(io.BytesIO(b"".join(rest))) as opened:
        assert opened.testzip() is None
        assert opened.read("classifier.onnx") == b"other"
        rows = opened.read("test.csv").decode().splitlines()
    assert (rows[0], rows[1], rows[-1]) == ("text,label", "text 100,label 1", "text 499,label 1")


def full_card(chosen: Predictor) -> dict[str, Any]:
    trained = dict.fromkeys(("rows", "data_sha256", "judged_on", "C", "seed"), 0) | {"versions": {}}
    more = {"version": 1, "created": "2026-01-01", "metrics": {}, "trained_on": trained}
    return card_for(chosen) | more


@pytest.fixture
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports them from now on fails: what the web process must not do."""
    for name in ("skops", "skops.io", "onnx", "sklearn", "sklearn.linear_model"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.django_db(transaction=True)
def test_the_page_offers_every_form(
    browser: Client, alice: User, embedding_server: Server, request: pytest.FixtureRequest
) -> None:
    made = factories.trained(alice)
    request.getfixturevalue("without_libraries")
    page = browser.get(f"/classify/{made.pk}/export/").content.decode()
    assert "Download .zip" in page
    assert "hx-trigger" not in page
    run = f"/classify/{made.pk}/runs/1/export"
    for form in ("json", "npz", "skops", "onnx"):
        answer = browser.get(f"{run}.{form}")
        assert answer.status_code == 200
        assert f'filename="Topics-1.{form}"' in answer["content-disposition"]
    assert browser.get(f"{run}.pickle").status_code == 404
    assert browser.post(f"{run}.json").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_without_onnx_the_other_forms_are_there(
    browser: Client,
    alice: User,
    embedding_server: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(convert, "available", lambda: ["skops"])
    made = factories.trained(alice)
    page = browser.get(f"/classify/{made.pk}/export/").content.decode()
    assert "the package onnx is not installed here" in page
    assert browser.get(f"/classify/{made.pk}/runs/1/export.onnx").status_code == 404
    for form in ("skops", "zip"):
        assert browser.get(f"/classify/{made.pk}/runs/1/export.{form}").status_code == 200


def test_write_waits_for_another_writer_and_then_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = made_up()
    predictor_file.save(tmp_path, "run-1", chosen)
    files = [tmp_path / f"run-1.{form}" for form in convert.FORMS]
    later = threading.Thread(target=convert.write, args=(tmp_path, "run-1", chosen))
    at_the_lock = threading.Event()
    flock = fcntl.flock

    def watched(descriptor: int, operation: int) -> None:
        at_the_lock.set()
        flock(descriptor, operation)

    with convert.one_writer(tmp_path):
        monkeypatch.setattr(fcntl, "flock", watched)
        later.start()
        assert at_the_lock.wait(30)
        assert not any(file.exists() for file in files)
        for file in files:
            file.write_bytes(b"ours")
    later.join()
    assert [file.read_bytes() for file in files] == [b"ours", b"ours"]


@pytest.mark.django_db(transaction=True)
def test_a_worker_writes_what_is_not_there_yet(
    browser: Client,
    bobs_browser: Client,
    alice: User,
    embedding_server: Server,
    settings: Settings,
    announced: list[int],
) -> None:
    """As for a classifier that was imported, or trained before files were written."""
    made = factories.trained(alice)
    run = factories.newest(made)
    kept = convert.read(settings.CLASSIFIERS_DIR, run.artefact)
    convert.remove(settings.CLASSIFIERS_DIR, run.artefact)
    announced.clear()
    page, files = f"/classify/{made.pk}/export/", f"/classify/{made.pk}/runs/1/exports/"
    for path in (page, files):
        answer = browser.get(path).content.decode()
        assert "preparing" in answer
        assert 'hx-trigger="every 1s"' in answer
        assert "Download .zip" not in answer
    task = Task.objects.get(kind=TaskKind.CONVERSION, subject=str(run.pk))
    assert announced == [task.pk], "asking how far it is tells nobody again"
    answer = browser.get(f"/classify/{made.pk}/runs/1/export.skops", follow=True)
    assert "The .skops file is being prepared" in answer.content.decode()
    work.run(task.pk)
    again = convert.read(settings.CLASSIFIERS_DIR, run.artefact)
    assert again["onnx"] == kept["onnx"]
    assert "Download .zip" in browser.get(files).content.decode()
    assert bobs_browser.get(files).status_code == 404
    assert browser.post(files).status_code == 405
    convert.remove(settings.CLASSIFIERS_DIR, run.artefact)
    predictor_file.remove(settings.CLASSIFIERS_DIR, run.artefact)
    predictor_file.load.cache_clear()
    answer = browser.get(page).content.decode()
    assert "not on this machine" in answer
    assert "hx-trigger" not in answer


@pytest.mark.django_db(transaction=True)
def test_the_program_in_the_archive_repeats_the_score(
    browser: Client,
    alice: User,
    embedding_server: Server,
    llama_embeddings: LlamaProcess,
    tmp_path: Path,
) -> None:
    """With a prefix and fewer numbers, and without the row that only fitted when it was cut."""
    rows = factories.rows() + factories.rows(4, split="test", start=20)
    rows.append(ExampleRow(factories.TOPICS["card"].format("again ") * 150, "card", "test"))
    made = factories.trained(
        alice, factories.dataset(alice, rows), preparation=Preparation("query: ", 16, "cut")
    )
    archive = factories.download(browser, f"/classify/{made.pk}/runs/1/export.zip")
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        opened.extractall(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "# Topics, version 1" in card
    assert "here their beginning was used" in card
    ran = subprocess.run(
        [sys.executable, "predict.py"],
        cwd=tmp_path,
        env={"OPENAI_API_KEY": llama_embeddings.api_key, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    compared, *accuracies = ran.stdout.splitlines()
    count = factories.newest(made).metrics["rows"]
    assert compared == f"rows {count - 1} of the {count} it was judged on"
    here, stored = [line.split()[-1] for line in accuracies]
    assert here == stored == f"{factories.newest(made).metrics['accuracy']:.6f}"

    def labelled(**env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "predict.py", "HELLO THERE"],
            cwd=tmp_path,
            env={"OPENAI_API_KEY": llama_embeddings.api_key, "PATH": ""} | env,
            capture_output=True,
            text=True,
        )

    assert "hello" in labelled().stdout
    changed = json.loads((tmp_path / "classifier.json").read_text())
    assert {"unsure", "max_logit"} <= changed["gates"].keys()
    wrong = labelled(OPENAI_API_KEY="wrong")
    assert (wrong.returncode, wrong.stderr.strip()) == (
        1,
        "The embedding server refuses the key: set OPENAI_API_KEY.",
    )
    away = labelled(OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert "set OPENAI_BASE_URL" in away.stderr
    program = (tmp_path / "predict.py").read_text()
    (tmp_path / "predict.py").write_text(
        program.replace("client = ", 'card["gates"]["max_logit"] = 1e9\nclient = ', 1)
    )
    assert "(none of these)" in labelled().stdout
    (tmp_path / "predict.py").write_text(
        program.replace("client = ", 'card["gates"]["labels"] = {"hello": 1}\nclient = ', 1)
    )
    assert "(unsure)" in labelled().stdout


@pytest.mark.django_db(transaction=True)
def test_an_imported_classifier_answers_alike(
    browser: Client, alice: User, embedding_server: Server, settings: Settings
) -> None:
    made = factories.trained(alice)
    data = browser.get(f"/classify/{made.pk}/runs/1/export.json").content
    assert browser.get("/classify/import/").status_code == 200
    answer = browser.post("/classify/import/", {"file": SimpleUploadedFile("a.json", data)})
    assert answer.status_code == 302
    brought = Classifier.objects.first()
    assert brought is not None
    assert brought.pk != made.pk
    for page in ("", "thresholds/", "map/", "copies/", "improve/", "versions/", "chat/", "export/"):
        assert browser.get(f"/classify/{brought.pk}/{page}").status_code == 200, page
    overview = browser.get(f"/classify/{brought.pk}/").content.decode()
    assert "library versions and durations are not reported" in " ".join(overview.split())
    assert "did not converge" not in overview
    assert brought.current is not None
    assert made.current is not None
    one = predictor_file.load(settings.CLASSIFIERS_DIR, made.current.artefact)
    other = predictor_file.load(settings.CLASSIFIERS_DIR, brought.current.artefact)
    assert np.array_equal(one.weights, other.weights)
    tried = factories.post(browser, f"/classify/{brought.pk}/try/", {"text": "HELLO THERE 1"})
    assert "hello" in tried.content.decode()
    Server.objects.update(stored_facts=Server.objects.get().stored_facts | {"models": []})
    refused = browser.post("/classify/import/", {"file": SimpleUploadedFile("a.json", b"{}")})
    assert refused.status_code == 422
    assert "not a classifier" in refused.content.decode()
    assert browser.post("/classify/import/").status_code == 422


def import_over_http(api: Client, data: bytes) -> Any:
    file = SimpleUploadedFile("a.json", data)
    return api.post("/api/v1/classifiers/import", {"file": file})


@pytest.mark.django_db(transaction=True)
def test_an_import_warns_of_another_embedding_model(
    browser: Client, api: Client, alice: User, embedding_server: Server
) -> None:
    """Before it is asked for the first time and refuses."""
    made = factories.trained(alice)
    data = browser.get(f"/classify/{made.pk}/runs/1/export.json").content
    trained_with = json.loads(data)["embedding_model"]
    answer = import_over_http(api, data)
    assert (answer.status_code, answer.json()["warnings"]) == (201, [])
    server = Server.objects.get()
    mine = server.stored_facts["models"][0]
    other = mine | {"id": "other.gguf", "weights": [1, 2]}
    changed = mine | {"weights": [1, 2]}
    for models, sentence in (
        ([other], "which offers other.gguf. It cannot predict until"),
        ([], "which does not list this model"),
        ([changed], "has changed since training"),
        ([other, mine], "which is not the default embedding model (“other.gguf”)"),
    ):
        Server.objects.update(stored_facts=server.stored_facts | {"models": models})
        [warning] = import_over_http(api, data).json()["warnings"]
        assert sentence in warning
        assert trained_with in warning
        upload = {"file": SimpleUploadedFile("a.json", data)}
        page = browser.post("/classify/import/", upload, follow=True).content.decode()
        assert escape(warning) in page
    refused = import_over_http(api, b"{}")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
