"""A batch and the servers that work on it."""

from django.db import models
from django.utils import timezone

from apps.batch.models.statuses import BatchStatus
from apps.core.fields import OrderedJSONField
from apps.core.models import Owned, OwnedQuerySet
from apps.servers.models import Server

SLOWED_DOWN = "Slowed down: "
"""Begins the reason of a batch whose server takes fewer requests than it has slots."""


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
