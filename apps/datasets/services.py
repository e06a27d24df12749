"""The services of this room: what other rooms, pages and routes call."""

from collections.abc import Iterator
from pathlib import Path

from django.contrib.auth.models import User

from apps import files
from apps.datasets.errors import BeingChanged, NothingUsable, SnapshotGone, UploadTooLarge
from apps.datasets.exporting import export, export_rejections
from apps.datasets.hooks import TextLimit, is_trained_on
from apps.datasets.imports.create import create_dataset
from apps.datasets.imports.importing import import_upload
from apps.datasets.imports.options import ImportOptions, check_mapping
from apps.datasets.imports.uploads import remove_upload, store_upload
from apps.datasets.models import Dataset, Example
from apps.datasets.near_duplicates import NearPair, store_near_duplicates
from apps.datasets.rows.bulk_changes import PendingChange, pending_change
from apps.datasets.rows.bulk_edits import (
    Changed,
    change_matching,
    delete_duplicates,
    make_split,
    merge_labels,
    undo,
)
from apps.datasets.rows.edits import add_rows, delete_rows, relabel, relabel_rows, set_split
from apps.datasets.rows.history import SnapshotRef, SnapshotRow, read_snapshot, snapshot
from apps.datasets.rows.queues import QueueEntry, create_queue
from apps.datasets.rows.reports import LabelCount, Report, exact_leaks, label_variants, report
from apps.datasets.rows.revisions import last_undoable
from apps.datasets.rows.splitting import hold_out
from apps.files import ColumnMapping

__all__ = [
    "BeingChanged",
    "Changed",
    "ImportOptions",
    "LabelCount",
    "NearPair",
    "NothingUsable",
    "PendingChange",
    "QueueEntry",
    "Report",
    "SnapshotGone",
    "SnapshotRef",
    "SnapshotRow",
    "TextLimit",
    "UploadTooLarge",
    "add_rows",
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
    "hold_out",
    "import_upload",
    "is_trained_on",
    "label_variants",
    "last_undoable",
    "make_split",
    "merge_labels",
    "pending_change",
    "read_examples",
    "read_snapshot",
    "relabel",
    "relabel_rows",
    "remove_upload",
    "report",
    "set_split",
    "snapshot",
    "store_near_duplicates",
    "store_upload",
    "undo",
]

BATCH_ROWS = 2_000
EXAMPLE_FILE = Path(__file__).parent / "examples" / "banking_questions.csv"


def create_example_dataset(owner: User) -> Dataset:
    """Create a small real dataset to start with. `examples/README.md` has source and licence."""
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
