"""How much a text is like those a classifier was trained on, whatever its label. Pure numpy.

The mean cosine to the nearest training texts (Sun et al. 2022, "Out-of-Distribution Detection with
Deep Nearest Neighbors") tells strangers from the texts between two labels, which logits cannot: of
two labels the largest logit says the same as the probability. With three labels or more the largest
logit (Hendrycks et al. 2022) still adds a little, so it has a share. On Banking77 with some of the
labels as out_of_scope: docs/benchmarks.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

MAX_NUMBERS = 1_000_000  # of the sample: 2 MB in its file, half a millisecond a prediction
NEAREST = 5
LOGIT_SHARE = 0.3  # best or next to best from 3 to 60 labels; 0 for two
CHUNK = 2_048  # rows


@dataclass(frozen=True, slots=True)
class Familiarity:
    """cosine * mean cosine to the nearest of the sample + logit * largest logit - offset.

    In standard deviations of what texts like the training texts get: 0 is usual.
    """

    sample: Floats
    """(m, dimensions) training vectors, of unit length, rounded to half precision."""
    nearest: int
    cosine: float
    logit: float
    offset: float

    def as_dict(self) -> dict[str, float]:
        """All but the sample."""
        return {
            "nearest": self.nearest,
            "cosine": self.cosine,
            "logit": self.logit,
            "offset": self.offset,
        }

    def score(self, vectors: Floats, max_logits: Floats) -> Floats:
        """Args:
        vectors: (n, dimensions), of unit length.
        max_logits: (n,) the largest logit of each.
        """
        return self._weighed(_mean_cosine(vectors, self.sample, self.nearest), max_logits)

    def _weighed(self, cosines: Floats, max_logits: Floats) -> Floats:
        found: Floats = (self.cosine * cosines + self.logit * max_logits - self.offset).astype(
            np.float32
        )
        return found


def fit_familiarity(
    vectors: Floats, labels: Codes, groups: Codes, max_logits: Floats, *, seed: int = 0
) -> tuple[Familiarity, Floats]:
    """Choose the sample to keep and score the familiarity of each training text.

    Args:
        vectors: (n, dimensions), of unit length.
        labels: (n,) from 0.
        groups: (n,) the same for rows with the same text: a text is not its own neighbour.
        max_logits: (n,) by a model that had not seen the row.
    """
    places = _draw(labels, groups, MAX_NUMBERS // vectors.shape[1], seed=seed)
    sample = vectors[places].astype(np.float16).astype(np.float32)
    usual = int(np.median(np.bincount(labels[places])))
    nearest = max(1, min(NEAREST, usual - 1, len(places) - 1))
    cosines = _mean_cosine(vectors, sample, nearest, same=(groups, groups[places]))
    share = LOGIT_SHARE if int(labels.max()) > 1 else 0.0
    by_cosine = (1 - share) / _spread(cosines)
    by_logit = share / _spread(max_logits)
    offset = by_cosine * float(cosines.mean()) + by_logit * float(max_logits.mean())
    found = Familiarity(sample, nearest, by_cosine, by_logit, offset)
    return found, found._weighed(cosines, max_logits)


def _spread(values: Floats) -> float:
    return max(float(values.std()), 1e-6)


def _draw(labels: Codes, groups: Codes, most: int, *, seed: int) -> Codes:
    """Places of different texts, about as many of each label as its share, in order."""
    _, first = np.unique(groups, return_index=True)
    if len(first) <= most:
        return np.sort(first)
    order = np.random.default_rng(seed).permutation(first)
    compare_labels = order[np.argsort(labels[order], kind="stable")]
    # Every so many-th of all, label after label: each has its share, and the largest remainders.
    steps = np.linspace(0, len(compare_labels) - 1, most).astype(np.int64)
    return np.sort(compare_labels[steps])


def _mean_cosine(
    vectors: Floats, sample: Floats, nearest: int, same: tuple[Codes, Codes] | None = None
) -> Floats:
    """The mean cosine to the nearest of the sample, chunk by chunk: (n,).

    Args:
        same: a key per row of both sides; those with the same key are passed over.
    """
    found = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), CHUNK):
        mine = slice(start, start + CHUNK)
        cosines = vectors[mine] @ sample.T
        if same is not None:
            cosines[same[0][mine, None] == same[1][None, :]] = -1.0
        largest = np.partition(cosines, -nearest, axis=1)[:, -nearest:]
        found[mine] = largest.mean(axis=1)
    return found
