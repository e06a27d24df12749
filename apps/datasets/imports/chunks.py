"""The rows of an upload in chunks, each written in one transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps import files
from apps.datasets.imports.dataset_writer import Numbered, batches
from apps.datasets.imports.options import ImportOptions
from apps.datasets.models import Upload
from apps.files import Layout, LineCounts


@dataclass(frozen=True, slots=True)
class Chunk:
    rows: list[Numbered]
    file: str
    split: str
    done: int
    """Rows of all files that are read with it."""
    total: int
    """Rows of all files, as estimated by the share of the bytes that is read."""


def read_chunks(
    upload: Upload, options: ImportOptions, layouts: Sequence[Layout], counts: Sequence[LineCounts]
) -> Iterator[Chunk]:
    """Yield the rows of all files in order.

    Args:
        counts: filled with what the lines of each file became.
    """
    several = len(upload.files) > 1
    bytes_before = done = 0
    for place, (file, layout) in enumerate(zip(upload.files, layouts, strict=True)):
        path = upload.path_of(place)
        estimate = files.estimate_rows(path, layout)
        rows = files.read_rows(path, layout, options.mapping, counts=counts[place])
        for batch in batches(rows):
            done += len(batch)
            of_file = min(1.0, batch[-1][0] / max(1, estimate))
            share = (bytes_before + of_file * file["size"]) / max(1, upload.size)
            name = file["name"] if several else ""
            total = max(done, round(done / share)) if share else done
            yield Chunk(batch, name, file["split"], done, total)
        bytes_before += file["size"]
