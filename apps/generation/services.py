"""Starting jobs, and what people do with them beyond what every batch knows."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.models import Batch, Item, ItemStatus
from apps.batch.services import create_batch
from apps.datasets.models import Dataset, Split
from apps.generation.exports.row_fields import is_complete
from apps.generation.models import Job, RecipeVersion, StoredRows
from apps.generation.recipe.columns import schemas, seed_rows
from apps.generation.recipe.columns.seed import Seed
from apps.generation.recipe.columns.seed_rows import Table
from apps.generation.recipe.problems import Problem, RecipeError
from apps.generation.recipe.prompts.prompt_size import prompt_tokens
from apps.generation.recipe.recipe import MAX_SEED, Recipe
from apps.generation.recipe.spec import HANDLER, Filters, Spec
from apps.generation.review.near_duplicates import MEANING_ROWS
from apps.generation.review.restore import own_fingerprint
from apps.generation.rows import answer_check
from apps.servers.models import Server, Use
from apps.servers.services import NoServer, default_target

LARGE_ROWS = 500
LARGE_TOKENS = 200_000


def create_job(
    *,
    owner: User,
    name: str,
    rows: int,
    seed: int,
    recipe: Recipe,
    server: Server,
    model: str = "",
    refill: bool = False,
    near: float | None = None,
    meaning: float | None = None,
    test_dataset: Dataset | None = None,
    width: int | None = None,
    weight: int = 1,
    daily_tokens: int | None = None,
    version: RecipeVersion | Callable[[], RecipeVersion] | None = None,
    for_dataset: Dataset | None = None,
    for_classifier: int | None = None,
) -> Job:
    """A queued job with its pending rows. `wake_pump` sends the pump to it.

    Args:
        refill: go on until `rows` are accepted, quotas kept, or the yield is too low.
        near: reject a row that has this share of its 5-grams in common with another.
        meaning: reject a row whose embedding has this cosine with that of another.
        test_dataset: reject a row that repeats one of its texts.
        version: of its recipe, or what makes it: a job that is refused leaves none.
        for_dataset, for_classifier: what its rows are meant to make better.

    Raises:
        RecipeError: the rows that a seed column names are not there, or rows cannot be compared by
            meaning.
    """
    tables = tables_of(owner, recipe)
    tests = None if test_dataset is None else _test_table(test_dataset)
    if meaning is not None:
        others = [*tables.values()] if tests is None else [*tables.values(), tests]
        _check_meaning(rows + sum(len(table.rows) for table in others))
    tokens = prompt_tokens(recipe, tables)
    # What was read above may be large: nobody else who writes waits for it.
    with transaction.atomic():
        stored = {name: _store(owner, table, name) for name, table in tables.items()}
        test_set = None
        if test_dataset is not None and tests is not None:
            test_set = _store(owner, tests, test_dataset.name)
        kept = with_stored_rows(recipe, stored)
        spec = Spec(
            kept,
            seed,
            recipe.system_message,
            stored,
            Filters(near, test_set, meaning),
            tokens,
        )
        batch = create_batch(
            owner=owner,
            server=server,
            name=name,
            model=model,
            handler=HANDLER,
            spec=spec.as_dict(),
            inputs=rows,  # a row's index says which it is: the recipe does the rest
            weight=weight,
            refill=refill,
            width=width,
            daily_tokens=daily_tokens,
        )
        return Job.objects.create(
            owner=owner,
            name=name,
            batch=batch,
            version=version() if callable(version) else version,
            test_dataset=test_dataset.name if test_dataset is not None else "",
            for_dataset=for_dataset,
            for_classifier=for_classifier,
        )


def _check_meaning(texts: int) -> None:
    """That so many texts can be compared by their meaning."""
    try:
        default_target(Use.EMBEDDINGS)
    except NoServer as error:
        message = f"Comparing by meaning needs an embedding server. {error}"
        raise RecipeError([Problem(("meaning",), message)]) from error
    if texts > MEANING_ROWS:
        message = (
            f"Comparing by meaning is limited to {MEANING_ROWS:,} texts, seed rows and test set "
            f"included. This job has {texts:,}. Compare by text instead."
        )
        raise RecipeError([Problem(("meaning",), message)])


def is_large(batch: Batch) -> bool:
    """Whether the same job once more is worth a question first."""
    return batch.wanted >= LARGE_ROWS or batch.spent_tokens >= LARGE_TOKENS


def duplicate(job: Job) -> Job:
    """The same job once more, with another seed: the same recipe asks for other rows.

    Raises:
        WrongState: its server was removed.
    """
    batch, spec = job.batch, job.spec
    if batch.server is None:
        raise WrongState(
            "The model server of this job was removed. Start a new job with another one."
        )
    copy = create_job(
        owner=job.owner,
        name=f"{job.name[:190]} (again)",
        rows=batch.wanted,
        seed=secrets.randbelow(MAX_SEED),
        recipe=spec.recipe,
        server=batch.server,
        model=batch.model,
        refill=batch.goal is not None,
        near=spec.filters.near,
        meaning=spec.filters.meaning,
        width=batch.width,
        weight=batch.weight,
        daily_tokens=batch.daily_tokens,
        version=job.version,
        for_dataset=job.for_dataset,
        for_classifier=job.for_classifier,
    )
    if spec.filters.test_set is not None:
        _copy_test_set(job, copy)
    return copy


def _copy_test_set(job: Job, copy: Job) -> None:
    key = job.spec.filters.test_set or 0
    stored = StoredRows.objects.owned_by(job.owner).filter(pk=key).first()
    if stored is None:
        return
    new = StoredRows.objects.create(
        owner=job.owner, origin=stored.origin, count=stored.count, rows=stored.rows
    )
    batches.update_spec(
        copy.batch,
        lambda spec: {**spec, "filters": {**spec["filters"], "test_set": new.pk}},
    )
    copy.test_dataset = job.test_dataset
    copy.save(update_fields=["test_dataset"])


def delete(job: Job) -> None:
    """With its rows and the real rows that were stored for it. Its datasets stay."""
    spec = job.batch.spec
    stored = [*spec.get("stored", {}).values(), spec.get("filters", {}).get("test_set")]
    batches.delete_batch(job.batch)  # takes the job along, in pieces
    StoredRows.objects.owned_by(job.owner).filter(pk__in=[pk for pk in stored if pk]).delete()


def rename(job: Job, name: str) -> None:
    """A job and what the Servers page calls it."""
    job.name = name
    job.save(update_fields=["name"])
    batches.change_batch(job.batch, name=name)


def edit(item: Item, fields: Mapping[str, str], spec: Spec) -> None:
    """A person's words for some fields of an accepted row; what the model wrote stays as it was.

    Numbers, lists and objects are given as JSON.

    Raises:
        WrongState: the row has no output.
        RecipeError: a field is not there, or no longer of its kind.
    """
    if not isinstance(item.output, dict):
        raise WrongState("This row has no fields to edit.")
    if not is_complete(spec, item):
        raise WrongState("Not all columns are written yet. Accept the row first, then edit it.")
    changed = dict(item.current_output) if isinstance(item.current_output, dict) else {}
    problems: list[Problem] = []
    for name, text in fields.items():
        if name not in item.output:
            problems.append(Problem((name,), f"No field “{name}”."))
            continue
        try:
            changed[name] = _like(item.output[name], text, name)
        except RecipeError as error:
            problems.extend(error.problems)
    for column in spec.recipe.written:
        inner = {name: changed[name] for name in column.names if name in changed}
        empty = all(value is None for value in inner.values())
        if column.answer_schema is None or empty:
            continue
        for sentence in schemas.errors(column.answer_schema, inner):
            message = f"The edit does not match the schema: {sentence}"
            problems.append(Problem((column.name,), message))
    if problems:
        raise RecipeError(problems)
    item.edited = None if changed == item.output else changed
    is_accepted = item.status == ItemStatus.ACCEPTED
    fingerprint = own_fingerprint(item, spec) if is_accepted else item.fingerprint
    batches.edit_row(item, item.edited, fingerprint)


def _like(old: Any, text: str, name: str) -> Any:
    """The text as a value of the old one's kind."""
    text = text.replace("\r\n", "\n")
    if isinstance(old, str) or old is None:
        return text
    try:
        return answer_check.parse_json(text)
    except ValueError as error:
        message = f"“{name}” is not valid JSON: {error}."
        raise RecipeError([Problem((name,), message)]) from error


# --- Seed rows ----------------------------------------------------------------


def tables_of(owner: User, recipe: Recipe) -> dict[str, Table]:
    """The rows of each seed column, as they are now.

    Raises:
        RecipeError: a dataset is not there (any more), or is empty.
    """
    tables: dict[str, Table] = {}
    for at, column in enumerate(recipe.columns):
        if isinstance(column, Seed):
            try:
                tables[column.name] = _table(owner, column)
            except RecipeError as error:
                raise RecipeError([p.at("columns", at) for p in error.problems]) from error
    return tables


def _table(owner: User, column: Seed) -> Table:
    if column.stored is not None:
        stored = StoredRows.objects.owned_by(owner).filter(pk=column.stored).first()
        if stored is None:
            raise RecipeError([Problem(("stored",), "The seed rows no longer exist.")])
        return Table(stored.rows)
    if column.dataset is not None:
        dataset = Dataset.objects.owned_by(owner).filter(pk=column.dataset).first()
        if dataset is None:
            raise RecipeError(
                [Problem(("dataset",), "No such dataset, or you do not have access to it.")]
            )
        return _dataset_table(dataset)
    return column.table


def _dataset_table(dataset: Dataset) -> Table:
    if dataset.rows > seed_rows.MAX_ROWS:
        message = (
            f"“{dataset.name}” has {dataset.rows:,} rows; the limit is {seed_rows.MAX_ROWS:,}."
        )
        raise RecipeError([Problem(("dataset",), message)])
    # What something will be judged on is never an example.
    rows = dataset.examples.exclude(split=Split.TEST).order_by("index").values("text", "label")
    if not rows:
        raise RecipeError([Problem(("dataset",), f"“{dataset.name}” has only test rows.")])
    return Table([{"text": row["text"], "label": row["label"]} for row in rows])


def _test_table(dataset: Dataset) -> Table:
    """The rows something will be judged on: the dataset's test rows; without any, all it has."""
    rows = dataset.examples.order_by("index")
    if dataset.test_rows:
        rows = rows.filter(split=Split.TEST)
    if rows.count() > seed_rows.MAX_ROWS:
        message = f"“{dataset.name}” has more than {seed_rows.MAX_ROWS:,} rows to compare with."
        raise RecipeError([Problem(("test_dataset",), message)])
    return Table([{"text": text} for text in rows.values_list("text", flat=True)])


def _store(owner: User, table: Table, origin: str) -> int:
    stored = StoredRows.objects.create(
        owner=owner, origin=origin[:300], count=len(table.rows), rows=list(table.rows)
    )
    return stored.pk


def with_stored_rows(recipe: Recipe, stored: Mapping[str, int]) -> Recipe:
    """A job's recipe for another job: its seed rows are the ones that were stored."""
    columns = tuple(
        column.with_stored_rows(stored[column.name])
        if isinstance(column, Seed) and column.name in stored
        else column
        for column in recipe.columns
    )
    return replace(recipe, columns=columns)
