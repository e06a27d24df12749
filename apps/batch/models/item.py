"""A row of a batch."""

from django.db import models

from apps.batch.handlers import RowOrigin
from apps.batch.models.batch import Batch
from apps.batch.models.statuses import ItemStatus
from apps.core.fields import OrderedJSONField
from apps.core.schemas.json_types import JsonValue
from apps.servers.models import Server


class Item(models.Model):
    """One row. `running` under an outdated lease token means that the row has to start again.

    A pump claims a pending row by `server` and `token` before it starts it.
    """

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="items")
    index = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=ItemStatus, default=ItemStatus.PENDING)
    code = models.CharField(
        max_length=30, blank=True, help_text="Machine-readable reason, for counts."
    )
    reason = models.TextField(
        blank=True, help_text="Why it was rejected, failed or returned to pending."
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    server = models.ForeignKey(
        Server,
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        # A removed server stays the one that the row came from.
        db_constraint=False,
        db_index=False,
        help_text="Whose pump claimed it; of a finished row, the server that did it.",
    )
    token = models.BigIntegerField(
        default=0, help_text="Token of the lease under which it was claimed."
    )
    not_before = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    replaced = models.BooleanField(default=False, help_text="A replacement row was created.")

    input = OrderedJSONField(null=True, blank=True)
    output = OrderedJSONField(null=True, blank=True)
    edited = OrderedJSONField(
        null=True, blank=True, help_text="Edited output; `output` stays unchanged."
    )
    reviewed = models.BooleanField(default=False, help_text="Reviewed by a person.")
    prompt = models.TextField(
        blank=True, help_text="The part of the prompt that only this row has."
    )
    raw = models.TextField(blank=True, help_text="Exact output of the model.")
    fingerprint = models.CharField(
        max_length=32, null=True, blank=True, help_text="Unique among the accepted rows of a batch."
    )
    minhash = models.BinaryField(
        null=True, blank=True, help_text="Signature for near-duplicate search."
    )
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "index"], name="one_item_per_index")
        ]
        indexes = [
            # Counts by status and reason come from the index alone; so does the next pending row.
            models.Index(fields=["batch", "status", "code", "index"], name="item_state"),
            models.Index(fields=["batch", "fingerprint"], name="item_fingerprint"),
            models.Index(fields=["batch", "finished"], name="item_finished"),
            # Queried every second for a job that refills; nearly always empty.
            models.Index(
                fields=["batch"],
                condition=models.Q(replaced=False, status__in=("rejected", "failed")),
                name="item_to_replace",
            ),
            # The few rows that pumps hold.
            models.Index(
                fields=["server"],
                condition=models.Q(server__isnull=False, finished__isnull=True),
                name="item_claimed",
            ),
        ]

    def __str__(self) -> str:
        return f"Row {self.index} of batch {self.batch_id}"

    @property
    def has_usage(self) -> bool:
        """True if the server reported the tokens of its answer."""
        return bool(self.prompt_tokens or self.completion_tokens)

    @property
    def original_index(self) -> int:
        """Index of the row it replaces, or its own."""
        origin = RowOrigin.read(self.input)
        return self.index if origin is None else origin.index

    @property
    def current_output(self) -> JsonValue:
        """The edited output if there is one, else the model's."""
        output: JsonValue = self.output if self.edited is None else self.edited
        return output
