"""A rejected row that a person wants after all: as it was judged, or written to its end."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from apps.batch import services as batches
from apps.batch.errors import WrongState
from apps.batch.handlers import RowOrigin
from apps.batch.models import Item, ItemStatus
from apps.generation.exports.row_fields import full_row, is_complete
from apps.generation.recipe.spec import Spec
from apps.generation.rows import answer_check
from apps.generation.rows.conversations import last_reply
from apps.generation.rows.duplicate_filter import stored_tables
from apps.generation.rows.generate_row import seed_of_row
from apps.generation.rows.replay import rebuild_row
from apps.generation.rows.row_texts import used_replies

UNREAD = ("length", "unfinished", "invalid_json", "schema", "empty")
"""Why an answer is no row: what else is wrong with one can be seen in its fields."""
NOTHING = "This row cannot be restored. The model’s output is not a valid row."


@transaction.atomic
def restore(item: Item, spec: Spec) -> None:
    """Accepts a rejected row. Columns that were never written are: it then waits for its turn.

    Raises:
        WrongState: it is not rejected, or there is nothing in it that could be a row.
    """
    if item.status != ItemStatus.REJECTED:
        raise WrongState(f"The row is {item.status}. Only rejected rows can be restored.")
    if _is_as_judged(spec, item):
        return _accept(item, spec, full_row(spec, item))
    if item.code == "bad_prompt":
        raise WrongState(f"It cannot be written: {item.reason}")
    replies = used_replies(spec.recipe, item.prompt, item.raw)
    row, used = rebuild_row(
        spec.recipe,
        seed_of_row(item.index, RowOrigin.read(item.input), spec, _tables(spec)),
        replies,
    )
    if not row.code:
        return _accept(item, spec, row.output or {})
    if not used:
        raise WrongState(NOTHING)
    earlier = RowOrigin.read(item.input)
    # With the same turn, a server would repeat its answer.
    turn = 1 if earlier is None else earlier.turn + 1
    batches.requeue_row(
        item,
        RowOrigin(item.original_index, tuple(replies[:used]), turn),
        "Accepted by you so far: the rest of it is still to be written.",
    )


def can_restore(spec: Spec, item: Item) -> bool:
    """True if the row looks restorable, judged from the row alone."""
    if item.status != ItemStatus.REJECTED or item.code == "bad_prompt":
        return False
    if _is_as_judged(spec, item):
        return True
    replies = used_replies(spec.recipe, item.prompt, item.raw)
    if len(replies) != 1:
        return bool(replies)
    first = spec.recipe.written[0]
    return not answer_check.check_answer(
        first.request_schema, replies[0], "stop", loosely=True
    ).code


def unparsed_reply(spec: Spec, item: Item) -> str:
    """Return the last output of the model if no field shows it, else ""."""
    if item.current_output is not None and item.code not in UNREAD:
        return ""
    reply = last_reply(spec, item)
    if item.current_output is None:
        return reply
    shown = (str(value).strip() for value in full_row(spec, item).values())
    return "" if reply.strip() in shown else reply


def _is_as_judged(spec: Spec, item: Item) -> bool:
    """True if the row is complete, as its reviewer saw it."""
    if item.current_output is None or not is_complete(spec, item):
        return False
    return item.code not in UNREAD or item.edited is not None


def _accept(item: Item, spec: Spec, output: Mapping[str, Any]) -> None:
    item.output = dict(output) if item.edited is None else item.output
    batches.accept_row(item, item.output, own_fingerprint(item, spec))


def own_fingerprint(item: Item, spec: Spec) -> str | None:
    """Return the fingerprint of a row; None if another accepted row has it."""
    found = answer_check.fingerprint(answer_check.free_texts_of(spec.recipe, item.current_output))
    if found is None or batches.has_accepted_row(item.batch_id, found, other_than=item.pk):
        return None
    return found


def _tables(spec: Spec) -> Any:
    return stored_tables(spec) if spec.recipe.seeds else {}
