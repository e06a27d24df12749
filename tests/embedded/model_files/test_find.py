"""Which file a setting means."""

from pathlib import Path

import pytest

from apps.embedded.errors import StartError
from apps.embedded.model_files import embedding_model, find
from apps.runtime.download_progress import DownloadProgress

GGUF = b"GGUF" + b"\0" * 100


def chat_model(
    chosen: str, folder: Path, told: list[DownloadProgress] | None = None
) -> find.ModelFile:
    told = [] if told is None else told
    return find.chat_model(chosen, root=folder, folder=folder / "models", tell=told.append)


def refusal(chosen: str, folder: Path) -> str:
    with pytest.raises(StartError) as raised:
        chat_model(chosen, folder)
    return str(raised.value)


def write(path: Path, content: bytes = GGUF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_without_a_choice_the_demo_model(tmp_path: Path) -> None:
    demo = write(tmp_path / "demo" / "workbench-demo.gguf")

    assert chat_model("", tmp_path) == find.ModelFile(
        name="workbench-demo", path=demo, context_per_slot=2048
    )


def test_a_file_of_their_own(tmp_path: Path) -> None:
    own = write(tmp_path / "own.gguf")

    assert chat_model(str(own), tmp_path) == find.ModelFile(
        name=str(own), path=own, context_per_slot=4096
    )


def test_a_file_in_their_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = write(tmp_path / "own.gguf")

    assert chat_model("~/own.gguf", tmp_path).path == own


def test_no_such_file(tmp_path: Path) -> None:
    assert refusal("/nowhere/m.gguf", tmp_path) == (
        "The model file /nowhere/m.gguf (WORKBENCH_CHAT_MODEL) cannot be read:"
        " No such file or directory."
    )


def test_a_folder(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory." in refusal(str(tmp_path), tmp_path)


def test_not_a_gguf_file(tmp_path: Path) -> None:
    page = write(tmp_path / "page.gguf", b"<html>")

    assert refusal(str(page), tmp_path).endswith("is not a GGUF file.")


def test_the_embedding_model_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_model, "prepare", lambda folder, report: folder / "made.gguf")

    found = find.embed_model("", folder=tmp_path, tell=lambda progress: None)

    assert found.path == tmp_path / "made.gguf"


def test_a_missing_embedding_model_is_not_prepared_at_the_start(tmp_path: Path) -> None:
    found = find.embed_model("", folder=tmp_path)

    assert found.name == "all-MiniLM-L6-v2"
    assert not found.path.exists()


def test_an_embedding_model_of_their_own(tmp_path: Path) -> None:
    own = write(tmp_path / "own.gguf")

    found = find.embed_model(str(own), folder=tmp_path, tell=lambda progress: None)

    assert found.path == own


def test_a_missing_model_on_the_hub_is_not_downloaded_at_the_start(tmp_path: Path) -> None:
    found = find.chat_model("alice/models:q/m.gguf", root=tmp_path, folder=tmp_path / "models")

    assert found.name == "alice/models:q/m.gguf"
    assert found.path == tmp_path / "models" / "alice--models" / "q" / "m.gguf"
    assert not found.path.parent.exists()


def test_a_downloaded_model_is_checked_at_the_start(tmp_path: Path) -> None:
    write(tmp_path / "models" / "alice--models" / "m.gguf", b"<html>")

    with pytest.raises(StartError, match="is not a GGUF file"):
        find.chat_model("alice/models:m.gguf", root=tmp_path, folder=tmp_path / "models")
