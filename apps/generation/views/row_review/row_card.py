"""A row as its card shows it: clipped, in whole, or as a form; on its own page in whole."""

from dataclasses import dataclass

from apps.batch.models import Item, ItemStatus
from apps.generation.recipe.spec import Spec
from apps.generation.review import restore, similar_rows
from apps.generation.review.shown_row import Score, is_text, scores_of

FIELDS_SHOWN = 6
CLIPPED = 280  # characters


@dataclass(frozen=True, slots=True)
class Card:
    """One row and what is shown of it."""

    item: Item
    fields: list[similar_rows.RowField]
    scores: list[Score]
    fields_left: int
    is_long: bool
    """Clipped, it does not show everything."""
    clip: int | None
    """Max characters shown per field; None: all."""
    edits: bool
    can_accept: bool
    """True if accepting it changes anything."""
    unparsed_reply: str
    """The last output of the model, if no field shows it."""

    @property
    def can_edit(self) -> bool:
        return any(field.editable for field in self.fields)

    @property
    def texts(self) -> list[similar_rows.RowField]:
        """Fields to read: the long ones, or the first. A form leaves those that it edits out."""
        shown = [field for field in self.fields if not (self.edits and field.editable)]
        return [field for field in shown if is_text(field)] or shown[:1]

    @property
    def values(self) -> list[similar_rows.RowField]:
        """The short ones."""
        texts = self.texts
        edited = [field for field in self.fields if self.edits and field.editable]
        return [field for field in self.fields if field not in texts and field not in edited]


def card_of(spec: Spec, item: Item, *, whole: bool = False, edits: bool = False) -> Card:
    fields = similar_rows.row_fields(spec, item) if item.current_output is not None else []
    order = {name: at for at, name in enumerate(spec.recipe.table_fields)}
    fields.sort(key=lambda field: order.get(field.name, len(order)))
    scores = scores_of(spec.recipe, fields)
    if not edits:
        scored = {score.name for score in scores}
        fields = [field for field in fields if field.name not in scored]
    everything = whole or edits
    shown = fields if everything else fields[:FIELDS_SHOWN]
    left = len(fields) - len(shown)
    unparsed = restore.unparsed_reply(spec, item)
    texts = [*(field.value for field in fields), unparsed]
    is_long = len(fields) > FIELDS_SHOWN or any(len(text) > CLIPPED for text in texts)
    is_new = item.status == ItemStatus.ACCEPTED and not item.reviewed
    accept = is_new or restore.can_restore(spec, item)
    clip = None if everything else CLIPPED
    return Card(item, shown, scores, left, is_long, clip, edits, accept, unparsed)
