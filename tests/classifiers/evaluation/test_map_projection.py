"""Points on a plane: principal components, or UMAP where it is installed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from apps.classifiers.evaluation import map_projection
from apps.classifiers.evaluation.map_projection import place_on_map, principal_components


def cloud(rows: int, dimensions: int = 8, seed: int = 0) -> map_projection.Floats:
    return np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)


def test_principal_components_are_those_of_numpy() -> None:
    vectors = cloud(200)
    vectors[:, 2] *= 9
    points, explained = principal_components(vectors)
    centred = vectors - vectors.mean(axis=0)
    _, values, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(explained, (values**2 / (values**2).sum())[:2], atol=1e-4)
    assert abs(np.corrcoef(points[:, 0], vectors[:, 2])[0, 1]) > 0.99


def test_principal_components_explain_no_more_than_all() -> None:
    points, explained = principal_components(cloud(30))
    assert points.shape == (30, 2)
    assert points.dtype == explained.dtype == np.float32
    assert explained[0] >= explained[1] >= 0
    assert explained.sum() <= 1


def test_place_on_map_names_the_side_and_row_of_each_point() -> None:
    found = place_on_map([cloud(5), cloud(3, seed=1), cloud(0), cloud(2, seed=2)])
    assert found.side.tolist() == [0] * 5 + [1] * 3 + [3] * 2
    assert found.row.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1]
    assert found.points.shape == (10, 2)


def test_place_on_map_draws_from_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_projection, "MAP_POINTS", 20)
    found = place_on_map([cloud(50), cloud(50, seed=1)])
    assert len(found.points) == 20
    assert set(found.side.tolist()) == {0, 1}
    assert found.row.max() > 20
    again = place_on_map([cloud(50), cloud(50, seed=1)])
    assert again.row.tolist() == found.row.tolist()


def test_umap_is_used_if_installed_and_done_without_if_it_breaks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """umap-learn is no requirement: a stand-in records its options and returns what it is told."""
    options: dict[str, object] = {}

    class UMAP:
        places = np.ones((80, 2))

        def __init__(self, **given: object) -> None:
            options.update(given)

        def fit_transform(self, vectors: object) -> object:
            return self.places

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    points, explained = map_projection.project_to_plane(cloud(80), seed=3)
    assert points.tolist() == UMAP.places.tolist()
    assert len(explained) == 0
    assert options["random_state"] == 3
    UMAP.places = np.full((80, 2), np.nan)
    assert len(map_projection.project_to_plane(cloud(80))[1]) == 2
    assert "principal components" in caplog.text


def test_a_few_rows_are_never_given_to_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace())
    assert len(map_projection.project_to_plane(cloud(map_projection.FEWEST - 1))[1]) == 2
