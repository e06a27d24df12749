"""Making, changing and writing out datasets."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from apps.core.db import in_db
from apps.datasets import formats
from apps.datasets.formats import ExampleRow, FormatError, Layout, Mapping, RejectedRow
from apps.datasets.models import Dataset, Example, Rejection, Upload

BATCH_ROWS = 2_000
EXPORT_ROWS = 1_000
# What somebody uploaded and never imported is removed at a later upload.
UPLOAD_LIFETIME = timedelta(days=1)


class TooLarge(Exception):
    """The file is larger than an upload may be."""


class NothingUsable(Exception):
    """Not one row can be used. `rejected` holds the first of them with their reasons."""

    def __init__(self, rejected: Sequence[RejectedRow], count: int) -> None:
        found = "; ".join(
            f"row {row.row}{f', {row.column}' if row.column else ''}: {row.reason}"
            for row in rejected[:3]
        )
        super().__init__(
            f"None of the {count:,} rows can be used ({found})"
            if rejected
            else "There is no row below the header."
        )
        self.rejected = rejected


@transaction.atomic
def create_dataset(
    *,
    owner: User,
    name: str,
    rows: Iterable[ExampleRow | RejectedRow],
    origin: str,
    notes: Sequence[str] = (),
) -> Dataset:
    """A dataset of these rows, all of it or nothing. Rows are taken one by one, in order.

    Every row is checked (`formats.checked`): one with an empty text or label, say, is kept as a
    rejection with its number (counted from 1, unless the source numbered it) and reason.

    Raises:
        NothingUsable: no row is left.
    """
    dataset = Dataset.objects.create(owner=owner, name=name[:200], origin=origin[:300])
    labels: Counter[str] = Counter()
    splits: Counter[str] = Counter()
    seen: set[int] = set()
    rejected = duplicates = cleaned = 0
    source = enumerate(rows, start=1)
    while batch := list(islice(source, BATCH_ROWS)):
        examples: list[Example] = []
        rejections: list[Rejection] = []
        for number, given in batch:
            row = given if isinstance(given, RejectedRow) else formats.checked(given, number)
            if isinstance(row, RejectedRow):
                rejections.append(
                    Rejection(
                        dataset=dataset,
                        row=row.row,
                        column=row.column[:200],
                        reason=row.reason[:300],
                    )
                )
                continue
            cleaned += isinstance(given, ExampleRow) and given.label != row.label
            examples.append(
                Example(
                    dataset=dataset,
                    index=labels.total() + len(examples),
                    text=row.text,
                    label=row.label,
                    split=row.split or "",
                    origin=row.origin[:60],
                )
            )
            key = _fingerprint(row.text)
            duplicates += key in seen
            seen.add(key)
        Example.objects.bulk_create(examples)
        Rejection.objects.bulk_create(rejections)
        labels.update(example.label for example in examples)
        splits.update(example.split for example in examples)
        rejected += len(rejections)
    if not labels:
        first = [RejectedRow(r.row, r.column, r.reason) for r in dataset.rejections.all()[:20]]
        raise NothingUsable(first, rejected)
    dataset.rows = labels.total()
    dataset.label_counts = dict(labels.most_common())
    dataset.split_counts = {split: count for split, count in splits.items() if split}
    dataset.rejected_count = rejected
    dataset.duplicates = duplicates
    dataset.notes = list(notes)
    if cleaned:
        dataset.notes.append(f"Stray spaces were removed from {cleaned:,} labels.")
    dataset.save()
    return dataset


def _fingerprint(text: str) -> int:
    """64 bits of a text: a million of them take 60 MB less than the texts' own hashes as bytes."""
    key = formats.duplicate_key(text).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")


# --- Files --------------------------------------------------------------------


def store_upload(*, owner: User, file: "File[bytes]") -> Upload:
    """Keeps a sent file, under a name of our own, until it is imported.

    Raises:
        TooLarge: more bytes came than an upload may have.
    """
    forget_old_uploads(owner)
    name = Path((file.name or "file").replace("\\", "/").replace("\0", "")).name or "file"
    upload = Upload(owner=owner, file_name=name[:200], size=0)
    upload.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with upload.path.open("xb") as out:
            upload.path.chmod(0o600)
            for chunk in file.chunks():
                upload.size += len(chunk)
                if upload.size > settings.UPLOAD_LIMIT_BYTES:
                    limit = settings.UPLOAD_LIMIT_BYTES // 1024**2
                    raise TooLarge(
                        f"The file is larger than {limit} MB. Split it into several datasets."
                    )
                out.write(chunk)
        upload.save(force_insert=True)
    except BaseException:
        upload.path.unlink(missing_ok=True)
        raise
    return upload


def import_upload(
    upload: Upload, *, name: str, mapping: Mapping, header: bool | None = None
) -> Dataset:
    """A dataset of the file's rows; the file is removed afterwards.

    Raises:
        FormatError: the file cannot be read, or has no such column.
        NothingUsable: no row can be used.
    """
    layout = formats.inspect(upload.path, name=upload.file_name, header=header)
    check_mapping(layout, mapping)
    notes = [f"Read as {layout.description}."]
    if layout.cleaned_names:
        notes.append(f"Stray spaces were removed from {layout.cleaned_names} column names.")
    dataset = create_dataset(
        owner=upload.owner,
        name=name,
        rows=formats.read(upload.path, layout, mapping),
        origin=upload.file_name,
        notes=notes,
    )
    remove_upload(upload)
    return dataset


EXAMPLE_FILE = Path(__file__).parent / "examples" / "banking_questions.csv"


def create_example_dataset(owner: User) -> Dataset:
    """A small real dataset to start with: see `examples/README.md` for its source and licence."""
    layout = formats.inspect(EXAMPLE_FILE)
    return create_dataset(
        owner=owner,
        name="Banking questions (example)",
        rows=formats.read(EXAMPLE_FILE, layout, Mapping("text", "label")),
        origin="Banking77 by Casanueva et al. 2020, CC BY 4.0; 40 questions of each of 10 intents",
    )


def check_mapping(layout: Layout, mapping: Mapping) -> None:
    """Raises:
    FormatError: a column is not there, or one is asked to be two things.
    """
    for column in (mapping.text, mapping.label, mapping.split):
        if column and column not in layout.columns:
            there = ", ".join(f"“{name}”" for name in layout.columns[:20])
            raise FormatError(f"There is no column “{column}”. The columns are {there}.")
    if mapping.text == mapping.label:
        raise FormatError("The text and the label cannot be the same column.")
    if mapping.split in {mapping.text, mapping.label}:
        raise FormatError("The split cannot be the column of the text or the label.")


def remove_upload(upload: Upload) -> None:
    upload.path.unlink(missing_ok=True)
    upload.delete()


def forget_old_uploads(owner: User) -> None:
    for upload in Upload.objects.owned_by(owner).filter(
        created__lt=timezone.now() - UPLOAD_LIFETIME
    ):
        remove_upload(upload)


# --- Rows ---------------------------------------------------------------------


@transaction.atomic
def relabel(example: Example, label: str) -> Example:
    """Gives one example another label.

    Raises:
        ValueError: the label is empty or too long; the message says so.
    """
    row = formats.checked(ExampleRow(example.text, label), example.index)
    if isinstance(row, RejectedRow):
        raise ValueError(row.reason)
    example.label = row.label
    example.save(update_fields=["label"])
    counted = example.dataset.examples.order_by().values_list("label").annotate(Count("pk"))
    counts: Counter[str] = Counter(dict(counted))
    Dataset.objects.filter(pk=example.dataset_id).update(label_counts=dict(counts.most_common()))
    return example


def read_examples(dataset: Dataset) -> Iterator[Example]:
    """All examples in order, a batch at a time."""
    return dataset.examples.order_by("index").iterator(chunk_size=BATCH_ROWS)


async def export(dataset: Dataset, *, form: str) -> AsyncIterator[str]:
    """The dataset as "jsonl" or "csv", a piece at a time; no connection is held between pieces."""
    after = -1
    first = True
    while rows := await in_db(_rows_after, dataset, after):
        after = rows[-1].index
        examples = [example.row for example in rows]
        if form == "csv":
            yield ("\ufeff" if first else "") + formats.csv_lines(examples, header=first)
        else:
            yield "".join(map(formats.jsonl_line, examples))
        first = False


def _rows_after(dataset: Dataset, index: int) -> list[Example]:
    return list(dataset.examples.filter(index__gt=index).order_by("index")[:EXPORT_ROWS])
