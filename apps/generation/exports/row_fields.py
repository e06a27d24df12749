"""The fields of a job's rows."""

from collections.abc import Collection, Sequence

from apps.batch.handlers import RowOrigin, RowValues
from apps.batch.models import Item, ItemStatus
from apps.batch.services import rows_of
from apps.generation.models import Job
from apps.generation.recipe.prompts.budget import to_text
from apps.generation.recipe.spec import Spec
from apps.generation.rows.generate_row import seed_of_row
from apps.generation.rows.replay import rebuild_row, row_values
from apps.generation.rows.row_texts import used_replies

PIECE_ROWS = 500


def full_row(spec: Spec, item: Item) -> RowValues:
    """Return the fields of a row, edits included, in order; of an unfinished row those present."""
    recipe, fields = spec.recipe, item.current_output
    if not isinstance(fields, dict):
        fields = {"text": fields}
    missing = set(recipe.field_names) - fields.keys()
    if not missing:
        return fields
    # Old rows were stored without their drawn values: these are drawn and answered again.
    row_seed = seed_of_row(item.index, RowOrigin.read(item.input), spec, {})
    if recipe.is_plain:
        known = row_values(recipe, row_seed.index, row_seed.seed, row_seed.replaces)
        return {**fields, **{name: value for name, value in known.items() if name in missing}}
    row, _ = rebuild_row(recipe, row_seed, used_replies(recipe, item.prompt, item.raw))
    known = {**(row.output or {}), **fields}
    return {name: known[name] for name in recipe.field_names if name in known}


def is_complete(spec: Spec, item: Item) -> bool:
    """True if a row has all required fields."""
    row, recipe = full_row(spec, item), spec.recipe
    optional: set[str] = set()
    if recipe.is_plain and (schema := recipe.schema) is not None:
        optional = schema["properties"].keys() - set(schema.get("required", ()))
    return all(name in row or name in optional for name in recipe.field_names)


def accepted_rows(
    job: Job, after: int, limit: int = PIECE_ROWS, indices: Collection[int] | None = None
) -> list[Item]:
    """The next accepted rows behind the index `after`, of all or of some."""
    accepted = rows_of(job.batch_id).filter(status=ItemStatus.ACCEPTED, code="", index__gt=after)
    if indices is not None:
        accepted = accepted.filter(index__in=indices)
    fields = accepted.only("index", "input", "output", "edited", "prompt", "raw")
    return list(fields.order_by("index")[:limit])


def cells(spec: Spec, item: Item, names: Sequence[str]) -> list[str] | None:
    """A row's fields as texts; None while there is no answer."""
    if item.current_output is None:
        return None
    row = full_row(spec, item)
    return [to_text(row.get(name)) for name in names]
