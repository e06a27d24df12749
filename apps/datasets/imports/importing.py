"""From an upload to a dataset: a small one at once, a large one by a worker, in pieces.

A large import commits every few thousand rows, so that others can write meanwhile. Its dataset is
marked as importing and hidden until the last row is in. A worker holds the upload by a lease whose
token is in every commit; when it dies, the next one removes what was written and begins again.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from apps import files
from apps.datasets.imports.uploads import remove_files, remove_upload
from apps.datasets.imports.writer import Intake, NothingUsable, Numbered, batches, remove_in_pieces
from apps.datasets.models import (
    IN_PROGRESS,
    Dataset,
    DatasetState,
    Upload,
    UploadState,
)
from apps.files import ColumnMapping, FormatError, Layout, LineCounts, Quoting, ReadOptions

log = logging.getLogger(__name__)

# Imported while the person waits: a second or two. Bytes alone say little of a Parquet file.
SMALL_BYTES = 2 * 1024 * 1024
SMALL_ROWS = 30_000
LEASE = timedelta(seconds=120)
WAKE_AFTER = timedelta(seconds=45)
MAX_ATTEMPTS = 3


class Lost(Exception):
    """Another worker holds the upload now, or somebody cancelled it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How an upload is to be imported: what a person confirmed."""

    name: str
    mapping: ColumnMapping
    said: ReadOptions = field(default_factory=ReadOptions)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Plan":
        said = ReadOptions(**value["said"])
        if said.quoting is not None:
            said = replace(said, quoting=Quoting(said.quoting))
        return cls(value["name"], ColumnMapping(**value["mapping"]), said)


def is_small(upload: Upload, said: ReadOptions | None = None) -> bool:
    """Whether it can be imported while the person waits.

    Raises:
        FormatError: a file cannot be read.
    """
    if upload.size > SMALL_BYTES:
        return False
    rows = 0
    for place, file in enumerate(upload.files):
        path = upload.path_of(place)
        rows += files.estimate_rows(
            path, files.detect_layout(path, name=file["name"], options=said or ReadOptions())
        )
    return rows <= SMALL_ROWS


def import_upload(upload: Upload, plan: Plan) -> Dataset:
    """A dataset of the files' rows, all of it or nothing; the files are removed afterwards.

    For small uploads: the person waits. Should this process be killed, a worker goes on.

    Raises:
        FormatError: a file cannot be read, or has no such column, or is being imported already.
        NothingUsable: no row can be used, or there are too many labels.
    """
    if not enqueue(upload, plan):
        raise FormatError("This upload is being imported already.")
    lease = _Lease.take(str(upload.pk))
    if lease is None:
        raise FormatError("This upload is being imported already.")
    upload.refresh_from_db()
    try:
        dataset = _import(upload, lease)
    except Lost as error:
        _undo(upload)
        remove_upload(upload)
        raise FormatError("The import was cancelled.") from error
    except BaseException:
        _undo(upload)
        with suppress(Lost):
            lease.write(state=UploadState.WAITING, plan={}, lease=None, lease_until=None)
        raise
    upload.delete()
    return dataset


def enqueue(upload: Upload, plan: Plan) -> bool:
    """Hands a large upload to the workers, which have yet to be told (`tasks.wake_import`).

    Pressing Import twice imports once.

    Returns:
        Whether it was waiting, and is handed over now.

    Raises:
        FormatError: a file cannot be read, or has no such column.
    """
    check_files(upload, plan)
    waiting = Upload.objects.filter(
        pk=upload.pk, state__in=[UploadState.WAITING, UploadState.FAILED]
    )
    return bool(
        waiting.update(
            state=UploadState.QUEUED,
            plan=plan.to_json(),
            error="",
            attempts=0,
            done_rows=0,
            done_share=0,
            started=None,
            cancelled=False,
            woken=timezone.now(),
        )
    )


def cancel(upload: Upload) -> None:
    """Ends an import: at once where no worker is at it, else before its next piece."""
    Upload.objects.filter(pk=upload.pk, state__in=IN_PROGRESS).update(cancelled=True)
    now = timezone.now()
    idle = Upload.objects.filter(pk=upload.pk).filter(Q(lease=None) | Q(lease_until__lt=now))
    if idle.update(lease=uuid.uuid4(), lease_until=now + LEASE):
        upload.refresh_from_db()
        _undo(upload)
        remove_upload(upload)


def forgotten_imports() -> list[str]:
    """The imports nobody works on: their message was lost, or their worker died."""
    now = timezone.now()
    waiting = Upload.objects.filter(state__in=IN_PROGRESS, woken__lt=now - WAKE_AFTER).filter(
        Q(lease_until=None) | Q(lease_until__lt=now)
    )
    found = [str(pk) for pk in waiting.values_list("pk", flat=True)]
    Upload.objects.filter(pk__in=found).update(woken=now)
    return found


# --- What a plan asks of the files --------------------------------------------


def check_files(upload: Upload, plan: Plan) -> list[Layout]:
    """How each file is written.

    Raises:
        FormatError: one cannot be read, or lacks a column of the plan.
    """
    layouts = []
    several = len(upload.files) > 1
    for place, file in enumerate(upload.files):
        try:
            layout = files.detect_layout(
                upload.path_of(place), name=file["name"], options=plan.said
            )
            check_mapping(layout, plan.mapping)
        except FormatError as error:
            raise FormatError(f"{file['name']}: {error}" if several else str(error)) from error
        layouts.append(layout)
    return layouts


def check_mapping(layout: Layout, mapping: ColumnMapping) -> None:
    """Raises:
    FormatError: a column is not there, or one is asked to be two things.
    """
    for column in mapping.columns:
        if column not in layout.columns and column not in layout.paths:
            there = ", ".join(f"“{name}”" for name in layout.selectable_columns[:20])
            raise FormatError(f"No column “{column}”. Available columns: {there}.")
    if mapping.label is None and mapping.second_label:
        raise FormatError("Choose the first label column before a second one.")
    if mapping.text in {mapping.label, mapping.second_label}:
        raise FormatError("Choose different columns for text and label.")
    if mapping.label is not None and mapping.label == mapping.second_label:
        raise FormatError("Choose two different label columns.")
    if mapping.split in {mapping.text, mapping.label, mapping.second_label} - {None}:
        raise FormatError("Choose a split column other than the text or label column.")


def _notes(upload: Upload, layouts: Sequence[Layout], tallies: Sequence[LineCounts]) -> list[str]:
    notes = []
    for file, layout, tally in zip(upload.files, layouts, tallies, strict=True):
        counted = f" {tally.description}" if tally.lines else ""
        if len(layouts) == 1:
            notes.append(f"Read as {layout.description}.{counted}")
        else:
            split = _as_split(file["split"])
            notes.append(f"{file['name']}: {layout.description}{split}.{counted}")
        if tally.suspects:
            notes.append(f"Rows to check for stray quotes: {_numbers(tally.suspects)}.")
    if stray := sum(layout.cleaned_names for layout in layouts):
        names = "column name" if stray == 1 else "column names"
        notes.append(f"Extra spaces removed from {stray} {names}.")
    return notes


def _numbers(rows: Sequence[int]) -> str:
    return f"{', '.join(f'{row:,}' for row in rows[:5])}{', …' if len(rows) > 5 else ''}"


def _as_split(split: str) -> str:
    return f", split: {split}" if split else ""


# --- Pieces -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    rows: list[Numbered]
    file: str
    split: str
    share: float
    """How much of all bytes is read after it, about: 0 to 1."""


def _pieces(
    upload: Upload, plan: Plan, layouts: Sequence[Layout], tallies: Sequence[LineCounts]
) -> Iterator[_Piece]:
    several = len(upload.files) > 1
    before = 0
    for place, (file, layout) in enumerate(zip(upload.files, layouts, strict=True)):
        path = upload.path_of(place)
        total = files.estimate_rows(path, layout)
        rows = files.read_rows(path, layout, plan.mapping, counts=tallies[place])
        for batch in batches(rows):
            share = min(1.0, batch[-1][0] / max(1, total))
            yield _Piece(
                batch,
                file["name"] if several else "",
                file["split"],
                (before + share * file["size"]) / max(1, upload.size),
            )
        before += file["size"]


def _new_dataset(
    upload: Upload, plan: Plan, layouts: Sequence[Layout], state: DatasetState
) -> Dataset:
    extra: dict[str, None] = {}
    for layout in layouts:
        extra |= dict.fromkeys(files.extra_columns(layout, plan.mapping))
    return Dataset.objects.create(
        owner_id=upload.owner_id,
        name=plan.name[:200],
        origin=upload.file_name[:300],
        state=state,
        extra_columns=list(extra),
    )


# --- In the background --------------------------------------------------------


def run(upload_id: str) -> None:
    """Imports an upload as a worker; does nothing where another is at it, or it is over."""
    lease = _Lease.take(upload_id)
    if lease is None:
        return
    upload = Upload.objects.get(pk=upload_id)
    try:
        if upload.attempts > MAX_ATTEMPTS:
            raise FormatError(
                f"The worker died {MAX_ATTEMPTS} times during this import. Is there enough memory? "
                "Its log may say more."
            )
        _undo(upload, lease.renew)
        _import(upload, lease)
    except Lost:
        if Upload.objects.filter(pk=upload_id, lease=lease.token, cancelled=True).exists():
            upload.refresh_from_db()
            _undo(upload)
            remove_upload(upload)
        else:
            log.warning("Import %s was taken over or ended by somebody else.", upload_id)
    except (FormatError, NothingUsable) as error:
        _fail(upload, lease, str(error))
    except Exception:
        _fail(
            upload,
            lease,
            "Something went wrong. Nothing was imported. Details are in the worker log.",
        )
        raise


def _import(upload: Upload, lease: "_Lease") -> Dataset:
    plan = Plan.from_json(upload.plan)
    layouts = check_files(upload, plan)
    if plan.said.encoding is None:
        for place, layout in enumerate(layouts):
            settled = files.confirm_encoding(upload.path_of(place), layout.encoding)
            layouts[place] = replace(layout, encoding=settled)
            lease.renew()
    with transaction.atomic():
        dataset = _new_dataset(upload, plan, layouts, DatasetState.IMPORTING)
        lease.write(dataset=dataset, state=UploadState.IMPORTING, started=timezone.now())
    upload.dataset = dataset
    intake = Intake(dataset, names=plan.mapping, unlabelled=plan.mapping.accepts_unlabelled)
    tallies = [LineCounts() for _ in layouts]
    for piece in _pieces(upload, plan, layouts, tallies):
        with transaction.atomic():
            lease.write(done_rows=piece.rows[-1][0], done_share=piece.share)
            intake.write(piece.rows, file=piece.file, split=piece.split)
    with transaction.atomic():
        intake.finish(_notes(upload, layouts, tallies))
        Dataset.objects.filter(pk=dataset.pk).update(state=DatasetState.READY)
        lease.write(state=UploadState.DONE, done_share=1.0, lease=None, lease_until=None)
    remove_files(upload)
    dataset.state = DatasetState.READY
    return dataset


def _fail(upload: Upload, lease: "_Lease", error: str) -> None:
    try:
        _undo(upload, lease.renew)
        lease.write(state=UploadState.FAILED, error=error, lease=None, lease_until=None)
    except Lost:
        log.warning("Import %s had ended before.", upload.pk)


def _undo(upload: Upload, tick: Callable[[], None] = lambda: None) -> None:
    """Removes what an import wrote."""
    dataset = upload.dataset
    if dataset is not None and dataset.state != DatasetState.READY:
        remove_in_pieces(dataset, tick)
        upload.dataset = None


class _Lease:
    def __init__(self, upload_id: str, token: uuid.UUID) -> None:
        self.upload_id = upload_id
        self.token = token

    @classmethod
    def take(cls, upload_id: str) -> "_Lease | None":
        now = timezone.now()
        token = uuid.uuid4()
        free = Upload.objects.filter(pk=upload_id, state__in=IN_PROGRESS).filter(
            Q(lease_until=None) | Q(lease_until__lt=now)
        )
        taken = free.update(lease=token, lease_until=now + LEASE, attempts=F("attempts") + 1)
        return cls(upload_id, token) if taken else None

    def write(self, **values: Any) -> None:
        """Changes the upload, as long as it is ours and nobody cancelled it.

        Raises:
            Lost: it is not, or somebody did. A surrounding transaction must end with it.
        """
        values = {"lease_until": timezone.now() + LEASE} | values
        mine = Upload.objects.filter(pk=self.upload_id, lease=self.token, cancelled=False)
        if not mine.update(**values):
            raise Lost

    def renew(self) -> None:
        self.write()
