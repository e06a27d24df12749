"""Background work on slots of model servers: batches, their rows and servers, pumps' leases.

The database holds the whole state of a job. Messages through Redis only wake a pump.
"""

from django.db import models
from django.utils import timezone

from apps.batch.handlers import RowOrigin
from apps.core.fields import OrderedJSONField
from apps.core.models import Owned, OwnedQuerySet
from apps.core.schemas.json_types import JsonValue
from apps.servers.models import Server

SLOWED_DOWN = "Slowed down: "
"""Begins the reason of a batch whose server takes fewer requests than it has slots."""


class BatchStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ItemStatus(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


ACTIVE = (BatchStatus.QUEUED, BatchStatus.RUNNING)
"""States in which a pump works on a batch."""
OPEN = (ItemStatus.PENDING, ItemStatus.RUNNING)
FINISHED = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)


class Batch(Owned):
    """Rows for one handler, sent to one model of one server."""

    name = models.CharField(
        max_length=200, blank=True, default="", help_text="Name on the Servers page."
    )
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.CharField(
        max_length=300,
        blank=True,
        help_text="Empty: the first model the server lists at the start.",
    )
    handler = models.CharField(max_length=50)
    spec = OrderedJSONField(help_text="Data that all rows share. The handler defines its shape.")
    status = models.CharField(max_length=10, choices=BatchStatus, default=BatchStatus.QUEUED)
    reason = models.TextField(
        blank=True, help_text="Why it waits, is paused or failed, as a sentence."
    )
    weight = models.PositiveSmallIntegerField(
        default=1, help_text="Priority relative to other jobs."
    )
    width = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Max rows in parallel; empty: all slots."
    )
    total = models.PositiveIntegerField(default=0, help_text="Rows created so far.")
    goal = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Accepted rows wanted; rejected and failed rows are replaced until then.",
    )
    tries = models.PositiveSmallIntegerField(
        default=5, help_text="With a goal: max rows created per row wanted."
    )
    rows_before_resume = models.PositiveIntegerField(
        default=0, help_text="Rows that existed when someone last resumed it."
    )
    yield_counted_since = models.DateTimeField(
        null=True, blank=True, help_text="Start of the rows that count towards the yield."
    )
    all_servers = models.BooleanField(
        default=False, help_text="Every server with the same model works on it."
    )
    may_fall_back = models.BooleanField(
        default=False, help_text="The fallback for generation works on it while its server is away."
    )
    daily_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Max tokens per day, uncached prompt plus output.",
    )
    day = models.DateField(null=True, blank=True, help_text="Day of `tokens_before_day`.")
    tokens_before_day = models.BigIntegerField(default=0, help_text="Tokens spent before that day.")
    resumes_on = models.DateField(
        null=True, blank=True, help_text="Day on which it resumes after the daily limit."
    )
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    # Sums over the rows, updated in the transaction that finishes a row: no page adds up 100,000.
    active_seconds = models.FloatField(
        default=0.0, help_text="Seconds in which rows were in flight."
    )
    active_until = models.FloatField(
        default=0.0, help_text="End of `active_seconds`, Unix time: servers work at the same time."
    )
    prompt_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    estimated_tokens = models.BigIntegerField(
        default=0, help_text="Estimate by characters for answers without reported usage."
    )

    objects = OwnedQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["server", "status"])]

    def __str__(self) -> str:
        return f"Batch {self.pk} ({self.handler}, {self.status})"

    @property
    def wanted(self) -> int:
        """Rows that the owner asked for."""
        return self.total if self.goal is None else self.goal

    @property
    def spent_tokens(self) -> int:
        """Uncached prompt tokens plus output tokens, estimated where not reported."""
        counted = self.prompt_tokens - self.cached_tokens + self.completion_tokens
        return counted + self.estimated_tokens

    @property
    def spent_today(self) -> int:
        """Tokens counted against today's limit."""
        return self.spent_tokens - self.tokens_before_day if self.day == timezone.localdate() else 0


class BatchServer(models.Model):
    """One of several servers that work on a batch. A batch with one server has none of these."""

    class State(models.TextChoices):
        WORKING = "working"
        WAITING = "waiting"
        """For a slot, or its turn."""
        AWAY = "away"
        """It takes no request now; its rows go to the other servers."""
        LEFT_OUT = "left_out", "Left out"
        """It cannot do this job: another model, a rejected key."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="servers")
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="+")
    model = models.CharField(max_length=300, blank=True, help_text="The batch's model there.")
    is_fallback = models.BooleanField(
        default=False, help_text="Works only while the batch's own server is away."
    )
    state = models.CharField(max_length=10, choices=State, default=State.WORKING)
    reason = models.TextField(blank=True, help_text="Why it does not work, as a sentence.")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "server"], name="one_entry_per_server")
        ]

    def __str__(self) -> str:
        return f"Server {self.server_id} of batch {self.batch_id}"


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


class ThroughputHistory(models.Model):
    """Speed of a job over time, apart from the batch: lists of jobs do not read it."""

    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="throughput")
    points = models.JSONField(default=list, help_text="See `throughput.Point`.")
    probe = models.JSONField(
        null=True, blank=True, help_text="Tokens/s by rows in parallel, see `ProbeResult`."
    )
    probed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"Throughput of batch {self.batch_id}"


class PumpLease(models.Model):
    """The right to work on a server's rows. A holder of an older token is out."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="pump_lease")
    token = models.BigIntegerField(default=0)
    until = models.DateTimeField()
    heartbeat = models.DateTimeField()
    holder = models.CharField(
        max_length=200, blank=True, default="", help_text="Process, see `process_identity`."
    )

    def __str__(self) -> str:
        return f"Pump of {self.server_id}, token {self.token}"
