"""The vectors of many texts as points on a plane.

UMAP (McInnes, Healy, Melville 2018) where `umap-learn` is installed, for it keeps neighbours
together; else the principal components. The library is optional: it brings a compiler, LLVM, that
is larger than all else here. Imported where it is used, in the worker.
"""

import importlib
import logging
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apps.classifiers.evaluation.row_results import MapPoints

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]

MAP_POINTS = 10_000
NEIGHBOURS = 15
FEWEST = 4 * NEIGHBOURS  # texts; below, all are neighbours and UMAP has nothing to keep
NO_SHARES: Floats = np.zeros(0, dtype=np.float32)


def project_to_plane(vectors: Floats, *, seed: int = 0) -> tuple[Floats, Floats]:
    """(n, 2) points and the two shares of variance they show: none of those with UMAP.

    A library that is there and breaks is said in the log and done without: a map is no reason to
    lose a run.
    """
    if len(vectors) >= FEWEST:
        try:
            return umap_projection(vectors, seed), NO_SHARES
        except ModuleNotFoundError as error:
            if error.name != "umap":
                log.warning("umap-learn is installed but cannot be imported: %s", error)
        except Exception:
            log.warning("UMAP failed; the map shows principal components.", exc_info=True)
    return principal_components(vectors)


def umap_projection(vectors: Floats, seed: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        umap = importlib.import_module("umap")
        # With a seed it comes out the same twice, and keeps to one thread.
        reducer = umap.UMAP(
            n_components=2,
            n_neighbors=NEIGHBOURS,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        )
        points = np.asarray(reducer.fit_transform(vectors), dtype=np.float32)
    if points.shape != (len(vectors), 2) or not np.isfinite(points).all():
        raise ValueError("UMAP placed some texts nowhere.")
    return points


def principal_components(vectors: Floats) -> tuple[Floats, Floats]:
    """Return (n, 2) points and the two shares of variance they show."""
    from sklearn.decomposition import PCA  # noqa: TID251

    pca = PCA(n_components=2, svd_solver="covariance_eigh")
    points = pca.fit_transform(vectors)
    shares = np.nan_to_num(pca.explained_variance_ratio_)  # of vectors that are all the same
    return points.astype(np.float32), shares.astype(np.float32)


def place_on_map(sides: Sequence[Floats], *, seed: int = 0) -> MapPoints:
    """At most MAP_POINTS rows on a plane, drawn from all sides alike."""
    counts = [len(side) for side in sides]
    side = np.repeat(np.arange(len(sides)), counts)
    row = np.concatenate([np.arange(count) for count in counts])
    if len(side) > MAP_POINTS:
        keep = np.sort(np.random.default_rng(seed).choice(len(side), MAP_POINTS, replace=False))
        side, row = side[keep], row[keep]
    chosen = np.concatenate([sides[at][row[side == at]] for at in range(len(sides))])
    points, explained = project_to_plane(chosen, seed=seed)
    return MapPoints(points, side.astype(np.int8), row.astype(np.int32), explained)
