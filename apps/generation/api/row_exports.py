"""Rows of a job over HTTP as files and datasets."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema, Status

from apps.core.api import ApiError, get_owned, owner
from apps.datasets.models import Dataset
from apps.generation.api.job_json import get_job_of
from apps.generation.api.router import router
from apps.generation.exports import to_dataset as exports_to_dataset
from apps.generation.exports.add_to_dataset import add_job_rows
from apps.generation.exports.data_card import data_card
from apps.generation.exports.downloads import export_response
from apps.generation.exports.formats import Format
from apps.generation.recipe.problems import RecipeError


class DatasetIn(Schema):
    name: str = Field(min_length=1, max_length=200, pattern=r"\S")
    text_field: str
    label_field: str


class AddIn(Schema):
    dataset: int
    text_field: str
    label_field: str


class AddedOut(Schema):
    id: int
    added: int
    known: int = Field(description="Left out: their text is in the dataset already.")
    tests: int = Field(description="Left out: they repeat one of its test rows.")
    unusable: int = Field(description="Left out: they have no usable text or label.")
    rows: int = Field(description="What the dataset has now.")


class DatasetMade(Schema):
    id: int
    rows: int


@router.get("/jobs/{pk}/export", response=Any)
def export_job(
    request: HttpRequest,
    pk: int,
    format: str = "jsonl",
    user: str | None = None,
    assistant: str | None = None,
    numbered: bool = False,
) -> Any:
    """The accepted rows, streamed.

    With `numbered` each has its `number` as the first field, `row` (not in the format `chat`).

    In the format `chat` each row is a conversation: `user` and `assistant` name its two fields,
    which are otherwise the last two texts that the model wrote. An empty `user`, or a recipe with
    one text, gives what was asked and answered.
    """
    job = get_job_of(request, pk)
    if format not in set(Format):
        known = ", ".join(Format)
        detail = f"Unknown export format {format!r}. Use {known}."
        raise ApiError(422, "unsupported_format", detail)
    return export_response(job, Format(format), user=user, assistant=assistant, numbered=numbered)


@router.get("/jobs/{pk}/card", response=Any)
def get_data_card(request: HttpRequest, pk: int) -> Any:
    """Describe the rows and how they were made: recipe, model, prompts, seeds, counts, filters."""
    return data_card(get_job_of(request, pk))


@router.post("/jobs/{pk}/to-dataset", response={201: DatasetMade})
def to_dataset(request: HttpRequest, pk: int, data: DatasetIn) -> Any:
    """Create a dataset from the accepted rows."""
    job = get_job_of(request, pk)
    try:
        dataset = exports_to_dataset.to_dataset(
            job=job,
            name=data.name.strip(),
            text_field=data.text_field,
            label_field=data.label_field,
        )
    except RecipeError as error:
        raise ApiError(422, "unknown_field", str(error)) from error
    return Status(201, {"id": dataset.pk, "rows": dataset.rows})


@router.post("/jobs/{pk}/add-to-dataset", response=AddedOut)
def add_to_dataset(request: HttpRequest, pk: int, data: AddIn) -> Any:
    """Adds the accepted rows to a dataset, as training rows of the origin “synthetic”.

    One change of the dataset, which can be undone.
    """
    job = get_job_of(request, pk)
    dataset = get_owned(Dataset, request, data.dataset)
    try:
        added = add_job_rows(
            job=job,
            dataset=dataset,
            text_field=data.text_field,
            label_field=data.label_field,
            by=owner(request),
        )
    except RecipeError as error:
        raise ApiError(422, "unknown_field", str(error)) from error
    except ValueError as error:
        raise ApiError(422, "nothing_usable", str(error)) from error
    dataset.refresh_from_db()
    return {
        "id": dataset.pk,
        "rows": dataset.rows,
        "added": added.rows,
        "known": added.duplicates,
        "tests": added.test_rows,
        "unusable": added.unusable,
    }
