"""Large arrays, memory-mapped from an unnamed file where they would crowd the memory."""

import tempfile

import numpy as np
from numpy.typing import NDArray

# A million texts of 384 numbers are 1.5 GB: from here on the system may write pages out.
MAPPED_FROM_BYTES = 512 * 1024**2


def empty_array(shape: tuple[int, int]) -> NDArray[np.float32]:
    """An uninitialised float32 array, memory-mapped where it is large. Its file has no name."""
    if shape[0] * shape[1] * 4 < MAPPED_FROM_BYTES:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile(prefix="vectors-") as file:  # the mapping keeps it
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def take_rows(
    array: NDArray[np.float32], rows: NDArray[np.bool_] | NDArray[np.intp]
) -> NDArray[np.float32]:
    """Return `array[rows]`, memory-mapped where it is large. Indices must be in range."""
    indices = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    found = empty_array((len(indices), array.shape[1]))
    # With its usual mode numpy fills a second array of that size first, and in memory.
    np.take(array, indices, axis=0, out=found, mode="clip")
    return found
