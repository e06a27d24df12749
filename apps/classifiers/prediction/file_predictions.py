"""A file of any size classified in the background: every row comes back, also a bad one.

The texts go through the same embedding cache as everything else, so a run that was interrupted
starts at the first row and is soon where it was.
"""

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from itertools import islice

from django.db import transaction
from django.utils import timezone

from apps import files
from apps.classifiers.errors import (
    BadArtefact,
    ModelChanged,
    NotReady,
    WorkerDied,
)
from apps.classifiers.models import FilePrediction, FileStatus
from apps.classifiers.prediction.file_queue import partial_path, result_path, upload_path
from apps.classifiers.prediction.file_rows import (
    COLUMNS,
    classify_rows,
    own_cells,
    own_columns,
    row_texts,
    without_empty,
)
from apps.classifiers.prediction.predict import (
    load_classifier,
    prepare_classifier,
)
from apps.embeddings.errors import TooFewDimensions
from apps.files import FormatError
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.services import NoServer
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import INTERNAL_ERROR, MAX_ATTEMPTS, HeldTask

ROWS_AT_ONCE = 1_024


# --- Work ---------------------------------------------------------------------


EXPECTED = (
    *(NotReady, ModelChanged, BadArtefact, FormatError, TooFewDimensions),
    *(LLMError, NoServer, WorkerDied),
)


def predict_file(held: HeldTask) -> None:
    """Label the file that a task is about: the handler of `TaskKind.FILE_PREDICTION`."""
    try:
        asyncio.run(_predict_file(held))
    except LeaseLost:
        raise
    except TaskCancelled:
        _end(held, FileStatus.CANCELLED)
    except EXPECTED as error:
        _end(held, FileStatus.FAILED, str(error))
    except Exception:
        _end(held, FileStatus.FAILED, INTERNAL_ERROR)
        raise


def _end(held: HeldTask, status: FileStatus, error: str = "") -> None:
    with transaction.atomic():
        held.end(TaskState(status), error)
        file = FilePrediction.objects.filter(pk=held.subject).first()
        if file is not None:
            file.status, file.error, file.finished = status, error, timezone.now()
            file.save(update_fields=["status", "error", "finished"])
    if file is not None:
        upload_path(file).unlink(missing_ok=True)
        partial_path(file).unlink(missing_ok=True)


@transaction.atomic
def _finish(held: HeldTask, counts: Counter[str]) -> None:
    held.end(TaskState.DONE)
    FilePrediction.objects.filter(pk=held.subject).update(
        status=FileStatus.READY, finished=timezone.now(), counts=dict(counts.most_common(200))
    )


async def _predict_file(held: HeldTask) -> None:
    try:
        file = await in_db(_begin, held)
        ready = await prepare_classifier(await in_db(load_classifier, file.classifier, file.run))
        layout = files.detect_layout(upload_path(file), name=file.file_name)
        settled = files.confirm_encoding(upload_path(file), layout.encoding)
        layout = replace(layout, encoding=settled)
        total = sum(1 for _ in files.read_records(upload_path(file), layout))
        counts: Counter[str] = Counter()
        done = 0
        partial = partial_path(file)
        kept = own_columns(layout.columns, file.column)
        with partial.open("wb") as out:
            partial.chmod(0o600)
            writer = files.create_writer(file.file_format, [*COLUMNS, *kept.values()])
            out.write(writer.header())
            records = files.read_records(upload_path(file), layout)
            while chunk := list(islice(records, ROWS_AT_ONCE)):
                found = await classify_rows(ready, row_texts(chunk, file.column))
                pairs = zip(found, chunk, strict=True)
                rows = [row | own_cells(cells, kept) for row, (_, cells) in pairs]
                out.write(writer.encode(map(without_empty, rows)))
                for row in rows:
                    counts[str(row["gate"] or row["label"] or "no label")] += 1
                done += len(chunk)
                await in_db(held.report, done, total)
        shutil.move(partial, result_path(file))
        upload_path(file).unlink(missing_ok=True)
        await in_db(_finish, held, counts)
    finally:
        await close_clients()
        await close_async_redis()


def _begin(held: HeldTask) -> FilePrediction:
    file = FilePrediction.objects.select_related("classifier__server", "run").get(pk=held.subject)
    if held.is_worn_out:
        raise WorkerDied(
            f"The worker crashed {MAX_ATTEMPTS} times on this file. Details may be in the "
            "worker log."
        )
    if not upload_path(file).exists():
        raise FormatError("The file is no longer on this machine. Upload it again.")
    with held.fence(done=0, total=0):
        file.status, file.started = FileStatus.RUNNING, file.started or timezone.now()
        file.save(update_fields=["status", "started"])
    held.check()
    return file
