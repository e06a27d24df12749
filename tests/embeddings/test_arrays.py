"""Arrays of vectors: the same content in memory and memory-mapped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.embeddings import arrays


@pytest.mark.parametrize("limit", [1, 10**9])
def test_take_rows_equals_indexing(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(arrays, "MAPPED_FROM_BYTES", limit)
    source = np.arange(60, dtype=np.float32).reshape(20, 3)
    chosen = np.array([19, 0, 7, 7], dtype=np.intp)
    taken = arrays.take_rows(source, chosen)
    assert isinstance(taken, np.memmap) is (limit == 1)
    assert np.array_equal(taken, source[chosen])


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_take_rows_by_mask_equals_indexing(mask: list[bool]) -> None:
    source = np.arange(len(mask) * 2, dtype=np.float32).reshape(len(mask), 2)
    rows = np.array(mask, dtype=np.bool_)
    assert np.array_equal(arrays.take_rows(source, rows), source[rows])


def test_an_array_of_no_rows_is_possible() -> None:
    assert arrays.empty_array((0, 384)).shape == (0, 384)


def test_a_mapped_array_has_no_file_with_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(arrays, "MAPPED_FROM_BYTES", 1)
    array = arrays.empty_array((10, 4))
    array[:] = 1
    assert list(folder.iterdir()) == []
    assert array.sum() == 40
