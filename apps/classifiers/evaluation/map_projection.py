"""The vectors of many texts as points on a plane.

UMAP (McInnes, Healy, Melville 2018) where `umap-learn` is installed, for it keeps neighbours
together; else the principal components. The library is optional: it brings a compiler, LLVM, that
is larger than all else here. Imported where it is used, in the worker.
"""

import importlib
import logging
import warnings

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]

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
            return _umap(vectors, seed), NO_SHARES
        except ModuleNotFoundError as error:
            if error.name != "umap":
                log.warning("umap-learn is installed but cannot be imported: %s", error)
        except Exception:
            log.warning("UMAP failed; the map shows principal components.", exc_info=True)
    return principal_components(vectors)


def _umap(vectors: Floats, seed: int) -> Floats:
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
    """Principal components: (n, 2) points and the two shares of variance they show."""
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    total = max(float(values.sum()), 1e-12)
    points = centred @ directions[:, [-1, -2]].astype(np.float32)
    return points.astype(np.float32), (values[[-1, -2]] / total).astype(np.float32)
