"""Model files that broke off on their way here."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.embedded.errors import StartError
from apps.embedded.model_files.find import check_gguf
from apps.embedded.model_files.gguf_size import is_cut_off
from tests.llama_process import REPOSITORY, LlamaProcess
from tests.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


def cut(whole: Path, share: float, folder: Path) -> Path:
    part = folder / "part.gguf"
    data = whole.read_bytes()
    part.write_bytes(data[: int(len(data) * share)])
    return part


def test_whole_files(tiny: Path) -> None:
    assert not is_cut_off(tiny)
    assert not is_cut_off(REPOSITORY / "demo/workbench-demo.gguf")


@pytest.mark.parametrize("share", [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9])
def test_files_that_broke_off(tiny: Path, share: float, tmp_path: Path) -> None:
    part = cut(tiny, share, tmp_path)
    assert is_cut_off(part)


def test_the_start_says_which_file_and_why(tiny: Path, tmp_path: Path) -> None:
    part = cut(tiny, 0.5, tmp_path)
    with pytest.raises(StartError, match=r"part.gguf \(WORKBENCH_CHAT_MODEL\) is incomplete"):
        check_gguf(part, "WORKBENCH_CHAT_MODEL")
    with pytest.raises(RuntimeError, match=r"part.gguf is incomplete: it ends before"):
        LlamaProcess(part).start()


@given(st.binary(max_size=300))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_read_to_an_end(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "any.gguf"
    file.write_bytes(b"GGUF\x03\x00\x00\x00" + data)
    assert is_cut_off(file) in {True, False}
