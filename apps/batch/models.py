"""Work done in the background on a model server's slots, whatever it is for.

The row is the truth: a message only wakes a pump, and every state a job can be in is here.
"""

from django.db import models
from django.utils import timezone

from apps.batch.fields import OrderedJSONField
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server


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
"""A pump works on these."""
OPEN = (ItemStatus.PENDING, ItemStatus.RUNNING)
FINISHED = (ItemStatus.ACCEPTED, ItemStatus.REJECTED, ItemStatus.FAILED)


class Batch(Owned):
    """Many rows for one handler, one server and one model."""

    name = models.CharField(
        max_length=200, blank=True, default="", help_text="What the Servers page calls it."
    )
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.CharField(
        max_length=300, blank=True, help_text="Empty: the first one the server names at the start."
    )
    handler = models.CharField(max_length=50)
    spec = OrderedJSONField(help_text="What the rows share: the handler knows its shape.")
    status = models.CharField(max_length=10, choices=BatchStatus, default=BatchStatus.QUEUED)
    reason = models.TextField(blank=True, help_text="Why it waits, rests or failed, as a sentence.")
    weight = models.PositiveSmallIntegerField(default=1, help_text="Its share beside other jobs.")
    width = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Most rows in flight at once; empty: every slot."
    )
    total = models.PositiveIntegerField(default=0, help_text="Rows made so far.")
    goal = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Accepted rows wanted: what is rejected or fails is replaced until then.",
    )
    tries = models.PositiveSmallIntegerField(
        default=5, help_text="With a goal: at most so many rows are made for each one wanted."
    )
    made_before = models.PositiveIntegerField(
        default=0, help_text="Rows there were when a person last let it go on."
    )
    watched_since = models.DateTimeField(
        null=True, blank=True, help_text="From when on the yield is judged."
    )
    daily_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Most tokens a day, read anew or written.",
    )
    day = models.DateField(null=True, blank=True, help_text="The day the budget was last begun.")
    day_began_at = models.BigIntegerField(default=0, help_text="Tokens before that day.")
    resumes_on = models.DateField(
        null=True, blank=True, help_text="When it goes on by itself after its budget was used up."
    )
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)

    # Sums over the rows, kept in the transaction that finishes a row: no page adds up 100,000.
    worked_s = models.FloatField(default=0.0, help_text="Seconds in which rows were in flight.")
    prompt_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    estimated_tokens = models.BigIntegerField(
        default=0, help_text="Of answers whose server reports no usage, by their characters."
    )

    objects = OwnedQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["server", "status"])]

    def __str__(self) -> str:
        return f"Batch {self.pk} ({self.handler}, {self.status})"

    @property
    def wanted(self) -> int:
        """How many rows a person asked for."""
        return self.total if self.goal is None else self.goal

    @property
    def spent_tokens(self) -> int:
        """Tokens that cost time: those read anew and those written, estimated where unknown."""
        counted = self.prompt_tokens - self.cached_tokens + self.completion_tokens
        return counted + self.estimated_tokens

    @property
    def spent_today(self) -> int:
        """Of the daily budget."""
        return self.spent_tokens - self.day_began_at if self.day == timezone.localdate() else 0


class Item(models.Model):
    """One row. `running` with the token of a pump that has lost its lease means: start again."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="items")
    index = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=ItemStatus, default=ItemStatus.PENDING)
    code = models.CharField(max_length=30, blank=True, help_text="The kind of reason, for counts.")
    reason = models.TextField(blank=True, help_text="Why it was rejected, failed or put back.")
    attempts = models.PositiveSmallIntegerField(default=0)
    token = models.BigIntegerField(default=0, help_text="The lease under which it runs.")
    not_before = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    replaced = models.BooleanField(default=False, help_text="Another row was made in its place.")

    input = OrderedJSONField(null=True, blank=True)
    output = OrderedJSONField(null=True, blank=True)
    edited = OrderedJSONField(
        null=True, blank=True, help_text="What a person made of the output, which stays as it was."
    )
    reviewed = models.BooleanField(default=False, help_text="A person has looked at it.")
    prompt = models.TextField(blank=True, help_text="What of the prompt was this row's own.")
    raw = models.TextField(blank=True, help_text="What the model wrote, to the letter.")
    fingerprint = models.CharField(
        max_length=32, null=True, blank=True, help_text="Two accepted rows never share one."
    )
    sketch = models.BinaryField(
        null=True, blank=True, help_text="By which its feature knows it again without reading it."
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
            # What a job that refills looks for every second: nearly always nothing.
            models.Index(
                fields=["batch"],
                condition=models.Q(replaced=False, status__in=("rejected", "failed")),
                name="item_to_replace",
            ),
        ]

    def __str__(self) -> str:
        return f"Row {self.index} of batch {self.batch_id}"

    @property
    def place(self) -> int:
        """The row it stands for: itself, or the one that it replaces."""
        return int(self.input["for"]) if isinstance(self.input, dict) else self.index

    @property
    def final(self) -> object:
        """The output, as a person left it."""
        return self.output if self.edited is None else self.edited


class Course(models.Model):
    """How a job went over time. Apart from the job: lists of jobs need nothing of it."""

    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="course")
    points = models.JSONField(default=list, help_text="See `history.Point`.")
    trial = models.JSONField(
        null=True, blank=True, help_text="How fast each width was, see `trials.Trial.result`."
    )
    tried = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"Course of batch {self.batch_id}"


class PumpLease(models.Model):
    """Who may work on a server's rows. The token only grows: whoever holds an older one is out."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="pump_lease")
    token = models.BigIntegerField(default=0)
    until = models.DateTimeField()
    heartbeat = models.DateTimeField()
    holder = models.CharField(
        max_length=200, blank=True, default="", help_text="The process, see `holders`."
    )

    def __str__(self) -> str:
        return f"Pump of {self.server_id}, token {self.token}"
