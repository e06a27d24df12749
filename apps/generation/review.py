"""Looking through a job's rows: which is next, and what it resembles."""

from dataclasses import dataclass
from typing import Any

from apps.batch.models import Item, ItemStatus
from apps.generation import quality
from apps.generation.duplicates import similarity
from apps.generation.exports import full_row
from apps.generation.models import Job
from apps.generation.prompts import written
from apps.generation.spec import Spec

COMPARED = 200
NEIGHBOURS = 3
SAMPLE = 1_000


@dataclass(frozen=True)
class Field:
    """A field of a row as the page shows it."""

    name: str
    value: str
    original: str
    editable: bool
    written: bool
    """By the model, that is, and not drawn."""

    @property
    def changed(self) -> bool:
        return self.value != self.original


@dataclass(frozen=True)
class Neighbour:
    index: int
    text: str
    share: float


def queue(job: Job, status: str, *, unseen: bool) -> Any:
    """The rows to look through, in order."""
    items = Item.objects.filter(batch_id=job.batch_id, status=status).order_by("index")
    return items.filter(reviewed=False) if unseen else items


def fields_of(spec: Spec, item: Item) -> list[Field]:
    original = item.output if isinstance(item.output, dict) else {}
    by_model = {name for column in spec.recipe.written for name in column.names}
    return [
        Field(
            name,
            written(value),
            written(original.get(name, value)),
            editable=name in original,
            written=name in by_model,
        )
        for name, value in full_row(spec, item).items()
    ]


def neighbours(spec: Spec, item: Item) -> list[Neighbour]:
    """The accepted rows it has most in common with, of a random sample of them."""
    text = "\n".join(quality.texts_of(spec.recipe, item.final))
    if not text.strip():
        return []
    others = (
        Item.objects.filter(batch_id=item.batch_id, status=ItemStatus.ACCEPTED)
        .exclude(pk=item.pk)
        .exclude(fingerprint=None)
        .order_by("fingerprint")  # a hash: a sample by chance, straight from the index
        .only("index", "output", "edited")[:COMPARED]
    )
    found = []
    for other in others:
        other_text = "\n".join(quality.texts_of(spec.recipe, other.final))
        found.append(Neighbour(other.index, other_text, similarity(text, other_text)))
    found.sort(key=lambda neighbour: neighbour.share, reverse=True)
    return [neighbour for neighbour in found[:NEIGHBOURS] if neighbour.share > 0.05]


def sample(job: Job, size: int = SAMPLE) -> list[Item]:
    """Accepted rows by chance, in their order."""
    items = Item.objects.filter(batch_id=job.batch_id, status=ItemStatus.ACCEPTED)
    chosen = items.exclude(fingerprint=None).order_by("fingerprint")
    return sorted(
        chosen.only("index", "input", "output", "edited")[:size], key=lambda item: item.index
    )
