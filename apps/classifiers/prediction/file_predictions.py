"""A file of any size classified in the background: every row comes back, also a bad one.

The texts go through the same embedding cache as everything else, so a run that was interrupted
starts at the first row and is soon where it was.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from apps import files
from apps.classifiers.errors import (
    BadArtefact,
    ModelChanged,
    NoColumn,
    NotReady,
    TooLarge,
    WorkerDied,
)
from apps.classifiers.models import Classifier, FilePrediction, FileStatus, TaskKind
from apps.classifiers.prediction.predict import (
    Prediction,
    ReadyClassifier,
    check_texts,
    classify,
    load_classifier,
    prepare_classifier,
)
from apps.embeddings.errors import TextsTooLarge, TooFewDimensions
from apps.files import FormatError, Layout, RejectedRow
from apps.llm.client import close_clients
from apps.llm.errors import LLMError
from apps.llm.permits import Lane
from apps.runtime.async_db import in_db
from apps.runtime.redis import close_async_redis
from apps.servers.services import NoServer
from apps.work import services as work
from apps.work.errors import LeaseLost, TaskCancelled
from apps.work.models import TaskState
from apps.work.services import INTERNAL_ERROR, MAX_ATTEMPTS, HeldTask

ROWS_AT_ONCE = 1_024
TOP = 3
FORMS = ("csv", "jsonl")
COLUMNS = (
    *("row", "text", "label", "confidence", "gate"),
    *("label_2", "confidence_2", "label_3", "confidence_3", "note"),
)


def upload_path(file: FilePrediction) -> Path:
    return Path(settings.CLASSIFIERS_DIR) / f"{file.artefact}.upload"


def result_path(file: FilePrediction) -> Path:
    return Path(settings.CLASSIFIERS_DIR) / f"{file.artefact}.{file.file_format}"


def remove_files(file: FilePrediction) -> None:
    for path in (upload_path(file), result_path(file), _partial(file)):
        path.unlink(missing_ok=True)


def _partial(file: FilePrediction) -> Path:
    return result_path(file).with_suffix(".part")


def queue_file(
    classifier: Classifier, file: "File[bytes]", *, column: str = "", form: str = "csv"
) -> FilePrediction:
    """Store a file, check that it can be read, and queue it.

    Args:
        column: which holds the texts; empty to guess.

    Raises:
        NotReady: the classifier was never trained.
        TooLarge, FormatError, NoColumn: the file cannot be used. Nothing is kept of it.
    """
    if classifier.current is None:
        raise NotReady("This classifier is not trained yet.")
    name = Path((file.name or "file").replace("\\", "/").replace("\0", "")).name or "file"
    with transaction.atomic():
        made = FilePrediction.objects.create(
            classifier=classifier,
            run=classifier.current,
            file_name=name[:200],
            file_format=form if form in FORMS else "csv",
        )
        try:
            _keep(file, upload_path(made))
            layout = files.detect_layout(upload_path(made), name=name)
            made.column = find_column(upload_path(made), layout, column)
            made.task = work.enqueue(TaskKind.FILE_PREDICTION, made.pk, owner=classifier.owner)
            made.save(update_fields=["column", "task"])
        except BaseException:
            remove_files(made)
            raise
    return made


def _keep(file: "File[bytes]", path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as out:
        path.chmod(0o600)
        for chunk in file.chunks():
            size += len(chunk)
            if size > settings.UPLOAD_LIMIT_BYTES:
                limit = settings.UPLOAD_LIMIT_BYTES // 1024**2
                raise TooLarge(
                    f"The file is larger than the limit of {limit} MB. Split it into several files."
                )
            out.write(chunk)


def find_column(path: Path, layout: Layout, wanted: str) -> str:
    """The column of the texts.

    Raises:
        NoColumn: the wanted one is not there.
    """
    if not wanted:
        if len(layout.columns) == 1:
            return layout.columns[0]
        return files.guess_mapping(layout.columns, files.sample_rows(path, layout)).text
    found = next((name for name in layout.columns if name == wanted.strip()), None)
    if found is None:
        there = ", ".join(f"“{name}”" for name in layout.columns[:20])
        raise NoColumn(f"No column “{wanted}”. Available columns: {there}.")
    return found


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
        _partial(file).unlink(missing_ok=True)


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
        partial = _partial(file)
        kept = own_columns(layout.columns, file.column)
        with partial.open("wb") as out:
            partial.chmod(0o600)
            writer = files.create_writer(file.file_format, [*COLUMNS, *kept.values()])
            out.write(writer.header())
            records = files.read_records(upload_path(file), layout)
            while chunk := list(islice(records, ROWS_AT_ONCE)):
                found = await _classified(ready, _texts(chunk, file.column))
                pairs = zip(found, chunk, strict=True)
                rows = [row | _kept(cells, kept) for row, (_, cells) in pairs]
                out.write(writer.encode(map(_without_empty, rows)))
                for row in rows:
                    counts[row["gate"] or row["label"] or "no label"] += 1
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


def own_columns(columns: Sequence[str], text: str) -> dict[str, str]:
    """The file's other columns, each with its name in the result, where ours keep theirs."""
    others = [name for name in columns if name != text]
    taken = {*COLUMNS, *others}
    names = {}
    for name in others:
        shown = name
        while shown in COLUMNS or (shown != name and shown in taken):
            shown += " (file)"
        taken.add(shown)
        names[name] = shown
    return names


def _kept(cells: dict[str, Any] | RejectedRow, names: dict[str, str]) -> dict[str, Any]:
    """The file's other cells; none of a row that could not be read."""
    if isinstance(cells, RejectedRow):
        return dict.fromkeys(names.values(), "")
    return {shown: _cell(cells.get(name)) for name, shown in names.items()}


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float | bool) else str(value)


def _texts(
    chunk: list[tuple[int, dict[str, Any] | RejectedRow]], column: str
) -> Iterator[tuple[int, str, str]]:
    """Each row's number, text, and what is wrong with it."""
    for number, cells in chunk:
        if isinstance(cells, RejectedRow):
            yield number, "", cells.reason
            continue
        value = cells.get(column)
        text = value if isinstance(value, str) else "" if value is None else str(value)
        problems = check_texts([text])
        problem = problems[0].replace("Text 1", "The text") if problems else ""
        if "\0" in text:
            problem = "The text contains a NUL character."
        yield number, text, problem


async def _classified(
    ready: ReadyClassifier, rows: Iterator[tuple[int, str, str]]
) -> list[dict[str, Any]]:
    """All rows, in order, those without a label with the reason in `note`."""
    given = list(rows)
    good = [place for place, (_, _, problem) in enumerate(given) if not problem]
    answers: dict[int, Prediction] = {}
    problems: dict[int, str] = {
        place: problem for place, (_, _, problem) in enumerate(given) if problem
    }
    if good:
        try:
            found = await classify(
                ready, [given[place][1] for place in good], lane=Lane.BATCH, top=TOP
            )
        except TextsTooLarge as error:
            for at, reason in error.problems.items():
                problems[good[at]] = str(reason)
            good = [place for place in good if place not in problems]
            found = (
                await classify(ready, [given[place][1] for place in good], lane=Lane.BATCH, top=TOP)
                if good
                else []
            )
        answers = dict(zip(good, found, strict=True))
    return [
        _row(number, text, answers.get(place), problems.get(place, ""))
        for place, (number, text, _) in enumerate(given)
    ]


def _row(number: int, text: str, answer: Prediction | None, note: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"row": number, "text": text, "note": note}
    if answer is None:
        return row
    row |= {"gate": answer.gate.words, "note": answer.notice}
    for place, ranked in enumerate(answer.top, start=1):
        ending = "" if place == 1 else f"_{place}"
        row |= {f"label{ending}": ranked.label, f"confidence{ending}": round(ranked.confidence, 4)}
    return row


def _without_empty(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value != "" or name == "text"}
