"""From an upload to a dataset: a small one at once, a large one by a worker, in chunks.

A large import commits every thousand rows, so that others can write meanwhile. Its dataset is
marked as importing and hidden until the last row is in. It is a durable task: each chunk is written
under its lease. If its worker dies, the next one removes what was written and starts again.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from apps import files
from apps.datasets.errors import NothingUsable
from apps.datasets.imports.chunks import read_chunks
from apps.datasets.imports.dataset_writer import DatasetWriter
from apps.datasets.imports.import_queue import enqueue_import
from apps.datasets.imports.notes import import_notes
from apps.datasets.imports.options import ImportOptions, check_files
from apps.datasets.imports.uploads import remove_files, remove_upload
from apps.datasets.models import Dataset, DatasetState, Upload
from apps.datasets.rows.removal import remove_in_pieces
from apps.files import FormatError, Layout, LineCounts
from apps.work import services as work
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import MAX_ATTEMPTS, HeldTask

WORN_OUT = (
    f"The worker crashed {MAX_ATTEMPTS} times during this import. Check the available memory and "
    "the worker log."
)
INTERNAL_ERROR = "Something went wrong. Nothing was imported. Details are in the worker log."


def import_upload(upload: Upload, options: ImportOptions) -> Dataset:
    """Import a small upload, all of it or nothing, and remove its files.

    The person waits. If this process is killed, a worker continues.

    Raises:
        FormatError: a file cannot be read, lacks a column, or is being imported already.
        NothingUsable: no row can be used, or there are too many labels.
    """
    queued = enqueue_import(upload, options, send=False)
    held = work.claim(upload.task.pk) if queued and upload.task else None
    if held is None:
        raise FormatError("This upload is being imported already.")
    try:
        dataset = _import(upload, held)
    except TaskCancelled as error:
        with suppress(LeaseLost):
            _cancel(upload, held)
        raise FormatError("The import was cancelled.") from error
    except LeaseLost as error:
        raise FormatError("The import was cancelled, or a worker continues it.") from error
    except BaseException:
        with suppress(LeaseLost):
            _undo(upload, held.renew)
            with held.fence():
                held.task.delete()  # the upload waits again
        raise
    remove_upload(upload)
    return dataset


def cancel_import(upload: Upload) -> None:
    """Cancel an import: at once if no worker holds it, else before its next chunk."""
    held = work.claim_cancelled(upload.task) if upload.task else None
    if held is not None:
        with held, suppress(LeaseLost):
            _cancel(upload, held)


def run_import(held: HeldTask) -> None:
    """Import an upload as a worker: the handler of `TaskKind.IMPORT`."""
    upload = Upload.objects.select_related("dataset").filter(pk=held.subject).first()
    if upload is None:
        return
    try:
        _undo(upload, held.renew)
        held.report(0, 0)
        if held.is_worn_out:
            raise FormatError(WORN_OUT)
        _import(upload, held)
    except TaskCancelled:
        _cancel(upload, held)
    except LeaseLost:
        raise
    except (FormatError, NothingUsable) as error:
        _fail(upload, held, str(error))
    except Exception:
        _fail(upload, held, INTERNAL_ERROR)
        raise


def _import(upload: Upload, held: HeldTask) -> Dataset:
    options = ImportOptions.from_json(held.task.options)
    layouts = check_files(upload, options)
    if options.read.encoding is None:
        for place, layout in enumerate(layouts):
            encoding = files.confirm_encoding(upload.path_of(place), layout.encoding)
            layouts[place] = replace(layout, encoding=encoding)
            held.renew()
    with held.fence():
        dataset = _new_dataset(upload, options, layouts)
        upload.dataset = dataset
        upload.save(update_fields=["dataset"])
    writer = DatasetWriter(
        dataset, mapping=options.mapping, unlabelled=options.mapping.accepts_unlabelled
    )
    counts = [LineCounts() for _ in layouts]
    done = 0
    for chunk in read_chunks(upload, options, layouts, counts):
        done = chunk.done
        with held.fence(done=done, total=chunk.total):
            held.check()
            writer.write(chunk.rows, file=chunk.file, split=chunk.split)
    with held.fence(done=done, total=done):
        held.check()
        dataset.state = DatasetState.READY
        writer.finish(import_notes(upload, layouts, counts))
        held.end(TaskState.DONE)
    remove_files(upload)
    return dataset


def _cancel(upload: Upload, held: HeldTask) -> None:
    """Remove an upload with the rows that its import wrote."""
    _undo(upload, held.renew)
    remove_upload(upload)


def _fail(upload: Upload, held: HeldTask, error: str) -> None:
    """Remove the rows that an import wrote. Its upload stays, to choose columns again."""
    _undo(upload, held.renew)
    held.end(TaskState.FAILED, error)


def _undo(upload: Upload, tick: Callable[[], None]) -> None:
    """Remove the rows that an unfinished import wrote."""
    tick()  # raises if the import has ended: its dataset is not to be touched
    if upload.dataset is not None:
        remove_in_pieces(upload.dataset, tick)
        upload.dataset = None


def _new_dataset(upload: Upload, options: ImportOptions, layouts: Sequence[Layout]) -> Dataset:
    extra: dict[str, None] = {}
    for layout in layouts:
        extra |= dict.fromkeys(files.extra_columns(layout, options.mapping))
    return Dataset.objects.create(
        owner_id=upload.owner_id,
        name=options.name[:200],
        origin=upload.file_name[:300],
        state=DatasetState.IMPORTING,
        extra_columns=list(extra),
    )
