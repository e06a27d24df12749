"""The door of this room: what other rooms, pages and routes call."""

from collections.abc import Iterator
from pathlib import Path

from django.contrib.auth.models import User

from apps import files
from apps.datasets.exporting import export, export_rejections
from apps.datasets.imports.importing import Plan, check_mapping, import_upload
from apps.datasets.imports.uploads import TooLarge, remove_upload, store_upload
from apps.datasets.imports.writer import NothingUsable, create_dataset
from apps.datasets.models import BulkChange, Dataset, Example
from apps.datasets.rows.changes import BeingChanged
from apps.datasets.rows.editing import (
    Changed,
    add_rows,
    can_undo,
    change_matching,
    delete_duplicates,
    delete_rows,
    make_split,
    merge_labels,
    relabel,
    relabel_rows,
    set_split,
    undo,
)
from apps.datasets.rows.history import (
    SnapshotGone,
    SnapshotRef,
    SnapshotRow,
    read_snapshot,
    snapshot,
)
from apps.datasets.rows.queues import QueueEntry, create_queue
from apps.datasets.rows.reports import exact_leaks, report
from apps.datasets.rows.reports import variants as label_variants
from apps.files import ColumnMapping

__all__ = [
    "BeingChanged",
    "BulkChange",
    "Changed",
    "NothingUsable",
    "Plan",
    "QueueEntry",
    "SnapshotGone",
    "SnapshotRef",
    "SnapshotRow",
    "TooLarge",
    "add_rows",
    "can_undo",
    "change_matching",
    "check_mapping",
    "create_dataset",
    "create_example_dataset",
    "create_queue",
    "delete_duplicates",
    "delete_rows",
    "exact_leaks",
    "export",
    "export_rejections",
    "import_upload",
    "label_variants",
    "make_split",
    "merge_labels",
    "read_examples",
    "read_snapshot",
    "relabel",
    "relabel_rows",
    "remove_upload",
    "report",
    "set_split",
    "snapshot",
    "store_upload",
    "undo",
]

BATCH_ROWS = 2_000
EXAMPLE_FILE = Path(__file__).parent / "examples" / "banking_questions.csv"


def create_example_dataset(owner: User) -> Dataset:
    """A small real dataset to start with: see `examples/README.md` for its source and licence."""
    layout = files.detect_layout(EXAMPLE_FILE)
    return create_dataset(
        owner=owner,
        name="Banking questions (example)",
        rows=files.read_checked_rows(EXAMPLE_FILE, layout, ColumnMapping("text", "label")),
        origin="Banking77 by Casanueva et al. 2020, CC BY 4.0; 40 questions for each of 10 intents",
    )


def read_examples(dataset: Dataset) -> Iterator[Example]:
    """All examples in order, also those without a label, a batch at a time."""
    return dataset.examples.order_by("index").iterator(chunk_size=BATCH_ROWS)
