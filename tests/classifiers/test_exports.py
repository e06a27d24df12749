"""A classifier that leaves, and one that comes: the same answers, and nothing that could run."""

import io
import json
import pickle  # noqa: TID251 - to see it refused
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from apps.classifiers import exporting, importing, predictor
from apps.classifiers.importing import BadFile
from apps.classifiers.models import Classifier
from apps.classifiers.predictor import Card, Predictor
from apps.llm.models import Server
from tests.classifiers import factories
from tests.llama_process import LlamaProcess


def made_up(labels: int = 3, dimensions: int = 8) -> Predictor:
    random = np.random.default_rng(0)
    return Predictor(
        Card([f"label {n}" for n in range(labels)], dimensions, 1.3, "model", "f" * 64, {}),
        random.normal(size=(labels, dimensions)).astype(np.float32),
        random.normal(size=labels).astype(np.float32),
    )


def card_for(chosen: Predictor) -> dict[str, Any]:
    card = chosen.card
    return {
        "format": exporting.FORMAT,
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
    data = exporting.as_skops(chosen)
    assert skops.io.get_untrusted_types(data=data) == []
    vectors = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
    loaded = skops.io.loads(data, trusted=[])
    assert np.allclose(loaded.predict_proba(vectors), chosen.probabilities(vectors), atol=1e-5)
    assert loaded.classes_.tolist() == chosen.card.labels


def test_onnx_gives_the_same() -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    chosen = made_up(5)
    model = onnx.load_from_string(exporting.as_onnx(chosen))
    vectors = np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32)
    logits, probabilities = ReferenceEvaluator(model).run(None, {"vectors": vectors})
    assert np.allclose(logits, chosen.logits(vectors), atol=1e-5)
    assert np.allclose(probabilities, chosen.probabilities(vectors), atol=1e-5)
    assert json.loads(model.metadata_props[0].value) == chosen.card.labels


@pytest.mark.parametrize("write", [exporting.as_json, exporting.as_npz])
def test_there_and_back_changes_nothing(write: Any) -> None:
    chosen = made_up()
    read, told = importing.read(write(card_for(chosen), chosen))
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
    data: dict[str, Any] = json.loads(exporting.as_json(card_for(chosen), chosen))
    return json.dumps(data | values).encode()


def bomb() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("weights.npy", "bias.npy", "card.npy"):
            archive.writestr(name, b"\0" * (importing.MOST_BYTES // 2))
    return data.getvalue()


OBJECTS = npz(weights=np.asarray([_Evil()], dtype=object), bias=np.zeros(1), card=np.zeros(1))
BAD: list[tuple[bytes, str]] = [
    (b"", "neither JSON nor NPZ"),
    (b"[1, 2]", "no classifier"),
    (b"{}", "no classifier"),
    (b"[" * 200_000, "neither JSON nor NPZ"),
    (pickle.dumps(_Evil()), "pickle"),
    (OBJECTS, "damaged"),
    (npz(weights=np.zeros(3)), "no classifier"),
    (b"PK\x03\x04garbage", "damaged"),
    (changed(dimensions=9), "not as described"),
    (changed(dimensions=True), "dimensions"),
    (changed(labels=["one"]), "two labels"),
    (changed(labels=["one", "two", "two"]), "labels"),
    (changed(labels=["one", "two", 3]), "label"),
    (changed(labels=["one", "two", "x" * 500]), "longer"),
    (changed(temperature=0), "temperature"),
    (changed(temperature="hot"), "damaged"),
    (changed(embedding_model=7), "name of the embedding model"),
    (changed(arrays={}), "damaged"),
    (changed(arrays={"weights": {"dtype": "|O", "shape": [3, 8], "base64": ""}}), "described"),
]


@pytest.mark.parametrize(
    ("data", "says"), BAD, ids=[f"{n}-{says}" for n, (_, says) in enumerate(BAD)]
)
def test_bad_files_are_refused_with_a_reason(
    data: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadFile, match=says):
        importing.read(data)
    assert "it ran" not in capsys.readouterr().out


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(BadFile, match="too large"):
        importing.read(bomb())


@pytest.mark.django_db(transaction=True)
def test_the_page_offers_every_form(browser: Client, alice: User, embedding_server: Server) -> None:
    made = factories.trained(alice)
    assert "Download .zip" in browser.get(f"/classify/{made.pk}/export/").content.decode()
    for form in exporting.FORMS:
        answer = browser.get(f"/classify/{made.pk}/runs/1/export.{form}")
        assert answer.status_code == 200
        assert f'filename="Topics-1.{form}"' in answer["content-disposition"]
    assert browser.get(f"/classify/{made.pk}/runs/1/export.pickle").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_program_in_the_archive_repeats_the_score(
    browser: Client,
    alice: User,
    embedding_server: Server,
    llama_embeddings: LlamaProcess,
    tmp_path: Path,
) -> None:
    made = factories.trained(alice)
    archive = browser.get(f"/classify/{made.pk}/runs/1/export.zip").content
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        opened.extractall(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "# Topics, version 1" in card
    ran = subprocess.run(
        [sys.executable, "predict.py"],
        cwd=tmp_path,
        env={"OPENAI_API_KEY": llama_embeddings.api_key, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    here, stored = [line.split()[-1] for line in ran.stdout.splitlines()]
    assert here == stored == f"{factories.newest(made).metrics['accuracy']:.6f}"


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
    assert brought.current is not None
    assert made.current is not None
    one = predictor.load(settings.CLASSIFIERS_DIR, made.current.artefact)
    other = predictor.load(settings.CLASSIFIERS_DIR, brought.current.artefact)
    assert np.array_equal(one.weights, other.weights)
    tried = factories.post(browser, f"/classify/{brought.pk}/try/", {"text": "HELLO THERE 1"})
    assert "hello" in tried.content.decode()
    Server.objects.update(facts=Server.objects.get().facts | {"models": []})
    refused = browser.post("/classify/import/", {"file": SimpleUploadedFile("a.json", b"{}")})
    assert refused.status_code == 422
    assert "no classifier" in refused.content.decode()
    assert browser.post("/classify/import/").status_code == 422
