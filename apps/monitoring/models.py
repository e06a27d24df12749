"""What each server and model did, in rows whose number has a bound; see `history/store.py`."""

from django.db import models

from apps.monitoring.history.measurement import Measurement
from apps.servers.models import Server


class Sample(models.Model):
    """What was measured of a server, or of one of its models, in some seconds.

    All numbers are sums, so that rows can be added: see `Measurement`.
    """

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="samples")
    model = models.CharField(max_length=300, blank=True, help_text="Empty: the whole server.")
    step = models.PositiveIntegerField(help_text="Seconds from one row to the next.")
    start = models.PositiveBigIntegerField(help_text="Unix time, in seconds.")

    readings = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    busy = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    slots = models.PositiveIntegerField(default=0)
    away = models.PositiveIntegerField(default=0)
    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    prompt = models.PositiveBigIntegerField(default=0)
    cached = models.PositiveBigIntegerField(default=0)
    reported = models.PositiveBigIntegerField(default=0)
    completion = models.PositiveBigIntegerField(default=0)
    timed = models.PositiveBigIntegerField(default=0)
    timed_ms = models.PositiveBigIntegerField(default=0)
    ended = models.PositiveBigIntegerField(default=0)
    only_thought = models.PositiveBigIntegerField(default=0)
    drafted = models.PositiveBigIntegerField(default=0)
    draft_accepted = models.PositiveBigIntegerField(default=0)
    drafting = models.PositiveBigIntegerField(default=0)
    cut_off = models.PositiveBigIntegerField(default=0)
    cut_off_cs = models.PositiveBigIntegerField(default=0)
    cut_off_cs2 = models.PositiveBigIntegerField(default=0)
    prompt_cut = models.PositiveBigIntegerField(default=0)
    too_long = models.PositiveBigIntegerField(default=0)
    prompt_sizes = models.JSONField(default=list, help_text="Prompts in each bucket.")
    first_ms = models.PositiveBigIntegerField(default=0)
    first_tokens = models.JSONField(default=list, help_text="Requests in each bucket.")

    loads = models.PositiveIntegerField(default=0)
    gpu_readings = models.PositiveIntegerField(default=0)
    gpu_memory = models.PositiveBigIntegerField(default=0)
    gpu_busy_readings = models.PositiveIntegerField(default=0)
    gpu_busy = models.FloatField(default=0.0)
    gpu_power = models.FloatField(default=0.0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["server", "model", "step", "start"], name="one_sample_per_step"
            )
        ]
        indexes = [models.Index(fields=["step", "start"], name="sample_step_start")]

    def __str__(self) -> str:
        return f"{self.server_id} {self.model or 'server'} {self.start}+{self.step}"

    @property
    def measurement(self) -> Measurement:
        return Measurement(**{name: getattr(self, name) for name in Measurement.names()})


class LastReading(models.Model):
    """The totals of a server when its last sample was taken: the next one has what came since."""

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="last_reading")
    taken = models.FloatField(help_text="Unix time, in seconds.")
    totals = models.JSONField(default=dict, help_text="Counts by model, see `llm.permits.totals`.")
    loaded = models.JSONField(null=True, help_text="Models in memory; null: not read yet.")

    def __str__(self) -> str:
        return f"{self.server_id} at {self.taken}"


class AlertKind(models.TextChoices):
    GONE = "gone", "Server offline"
    STUCK = "stuck", "Server stuck"
    SLOWER = "slower", "Server slower"
    CACHE = "cache", "Fewer prompt cache hits"
    SWAPS = "swaps", "Models swapped too often"
    STALLED = "stalled", "Job stalled"
    DISK = "disk", "Disk almost full"


class Alert(models.Model):
    """A problem that an admin should know of, from its begin to its end."""

    kind = models.CharField(max_length=10, choices=AlertKind)
    subject = models.CharField(max_length=60, help_text="What it is about: “server:3”, “job:5”.")
    text = models.TextField(help_text="A sentence or two, as it was at the begin.")
    begun = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-begun", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=models.Q(ended=None),
                name="one_open_alert_per_subject",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class PendingChange(models.Model):
    """A problem without an alert, or an alert without its problem, until that has lasted."""

    kind = models.CharField(max_length=10, choices=AlertKind)
    subject = models.CharField(max_length=60)
    first = models.DateTimeField(help_text="The first of the checks in a row that found it so.")
    latest = models.DateTimeField()
    checks = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], name="one_pending_change_per_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Channel(models.TextChoices):
    WEBHOOK = "webhook", "Webhook"
    MAIL = "mail", "E-mail"


class Delivery(models.Model):
    """A report of an alert that a receiver has not taken yet."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel)
    is_end = models.BooleanField(help_text="It reports the end of the alert, else its begin.")
    attempts = models.PositiveSmallIntegerField(default=0)
    due = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.channel}: {self.alert}"

    @property
    def text(self) -> str:
        return f"Over: {self.alert.text}" if self.is_end else self.alert.text
