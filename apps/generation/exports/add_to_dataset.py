"""Adds a job's accepted rows to a dataset."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from apps.batch.models import ItemStatus
from apps.batch.services import rows_of
from apps.datasets.models import Dataset, Split
from apps.datasets.services import add_rows
from apps.files import ExampleRow, RejectedRow, check_row
from apps.generation.exports.to_dataset import SYNTHETIC, examples_of
from apps.generation.models import Job
from apps.generation.recipe.problems import RecipeError
from apps.similarity.contamination import TestTextIndex
from apps.similarity.text_key import text_key

MAX_ADDED_ROWS = 10_000
KEYS_PER_QUERY = 500
# With more test rows than this, only exact duplicates of them are found.
MAX_COMPARED_TEST_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Added:
    """The result of adding a job's rows to a dataset."""

    rows: int
    duplicates: int
    """The dataset has their text."""
    test_rows: int
    """They repeat a test row."""
    unusable: int
    """They have no text, or one that datasets refuse."""

    def __str__(self) -> str:
        summary = "1 row was added" if self.rows == 1 else f"{self.rows:,} rows were added"
        reasons = (
            (self.duplicates, "already there"),
            (self.test_rows, "too like a test row"),
            (self.unusable, "without a usable text or label"),
        )
        left = ", ".join(f"{count:,} {why}" for count, why in reasons if count)
        return f"{summary}. Left out: {left}." if left else f"{summary}."


def add_job_rows(
    *, job: Job, dataset: Dataset, text_field: str, label_field: str, by: User
) -> Added:
    """Adds the accepted rows to the training rows of a dataset, as one change that can be undone.

    Texts that it has already, and those that repeat its test rows, are left out.

    Raises:
        RecipeError: there is no such field, or there are too many rows.
        NothingAccepted: there is no accepted row.
        ValueError: the dataset takes none of them; the message says why.
    """
    made = examples_of(job, text_field, label_field)
    batch_rows = rows_of(job.batch_id).filter(status=ItemStatus.ACCEPTED)
    if batch_rows.count() > MAX_ADDED_ROWS:
        raise RecipeError.one(
            f"Up to {MAX_ADDED_ROWS:,} rows can be added to a dataset. Create a new one instead."
        )
    repeats_test_row = _test_row_matcher(dataset)
    known = tests = unusable = 0
    chosen: dict[int, ExampleRow] = {}
    for row in made():
        row = replace(row, split=Split.TRAIN, origin=f"{row.origin}, job {job.pk}")
        good = check_row(row, 1)
        key = text_key(row.text)
        if isinstance(good, RejectedRow):
            unusable += 1
        elif key in chosen:
            known += 1
        elif repeats_test_row(row.text):
            tests += 1
        else:
            chosen[key] = good
    for key in _existing_keys(dataset, list(chosen)):
        del chosen[key]
        known += 1
    if chosen:
        add_rows(dataset, list(chosen.values()), by=by, description=_describe(job, len(chosen)))
    return Added(len(chosen), known, tests, unusable)


def _describe(job: Job, count: int) -> str:
    if count == 1:
        return f"1 {SYNTHETIC} row of the job “{job.name}” was added"
    return f"{count:,} {SYNTHETIC} rows of the job “{job.name}” were added"


def _existing_keys(dataset: Dataset, keys: list[int]) -> set[int]:
    """The keys of the texts that the dataset has."""
    found: set[int] = set()
    for start in range(0, len(keys), KEYS_PER_QUERY):
        part = dataset.examples.filter(text_key__in=keys[start : start + KEYS_PER_QUERY])
        found.update(part.values_list("text_key", flat=True))
    return found


def _test_row_matcher(dataset: Dataset) -> Callable[[str], bool]:
    """A function that is true for a text that repeats a test row."""
    tests = dataset.examples.filter(split=Split.TEST)
    keys = set(tests.values_list("text_key", flat=True))
    if dataset.test_rows > MAX_COMPARED_TEST_ROWS:
        return lambda text: text_key(text) in keys
    compared = TestTextIndex(tests.values_list("text", flat=True))
    return lambda text: text_key(text) in keys or bool(compared.describe_overlap(text))
