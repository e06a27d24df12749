"""Search in a person's own datasets, for the model they chat with."""

from typing import TypedDict

from django.contrib.auth.models import User

from apps.core.tools import Tool, ToolError, parameters, register
from apps.datasets.models import Dataset, Example
from apps.runtime.async_db import in_db

ROWS_AT_MOST = 20
TEXT_CHARACTERS = 500
NAMED_AT_MOST = 50


class RowSearch(TypedDict, total=False):
    words: str
    dataset: str
    label: str


async def search_datasets(user: User, arguments: RowSearch) -> str:
    """List rows whose text has the words, of one dataset or of all."""
    return await in_db(_search, user, arguments)


def _search(user: User, arguments: RowSearch) -> str:
    mine = Dataset.objects.owned_by(user)
    if name := arguments.get("dataset", "").strip():
        chosen = list(mine.filter(name__iexact=name))
        if not chosen:
            raise ToolError(f"There is no dataset “{name}”. {_listed(user)}")
    else:
        chosen = list(mine)
    rows = Example.objects.filter(dataset__in=chosen).select_related("dataset")
    for word in arguments.get("words", "").split()[:12]:
        rows = rows.filter(text__icontains=word)
    if label := arguments.get("label", "").strip():
        rows = rows.filter(label__iexact=label)
    found = list(rows.order_by("dataset_id", "index")[: ROWS_AT_MOST + 1])
    if not found:
        return f"No row was found. All words must occur in one text. {_listed(user)}"
    lines = [_line(row) for row in found[:ROWS_AT_MOST]]
    if len(found) > ROWS_AT_MOST:
        lines.append(f"There are more: these are the first {ROWS_AT_MOST}.")
    return "\n".join(lines)


def _line(row: Example) -> str:
    text = " ".join(row.text.split())
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[:TEXT_CHARACTERS]}…"
    label = f" [{row.label}]" if row.label else ""
    return f"- {row.dataset.name}, row {row.index + 1}{label}: {text}"


def _listed(user: User) -> str:
    datasets = Dataset.objects.owned_by(user).order_by("-pk")[:NAMED_AT_MOST]
    names = ", ".join(f"“{dataset.name}” ({dataset.rows:,} rows)" for dataset in datasets)
    return f"There are: {names}." if names else "This person has no datasets."


def offer_all() -> None:
    """Register the tools of this room."""
    register(
        Tool(
            name="search_datasets",
            title="Search in your datasets",
            description="Finds rows of this person's own datasets whose text has all the words, "
            "with their labels. Without words it shows the first rows.",
            parameters=parameters(
                [],
                words={"type": "string", "maxLength": 300},
                dataset={"type": "string", "description": "Its name; else all are searched."},
                label={"type": "string", "description": "Only rows with this label."},
            ),
            run="apps.datasets.chat_tools.search_datasets",
        )
    )
