"""What was measured and found at each server, the latest runs of each."""

from django.conf import settings
from django.db import models

from apps.servers.models import Server
from apps.tuning.doctor.examination import Examination, from_json
from apps.tuning.sweep.results import SweepResults

MOST_RUNS = 20  # of one server


class SweepRun(models.Model):
    """One sweep of a server. It runs while its durable task does."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="sweeps")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    model = models.CharField(max_length=300, blank=True, help_text="Empty: the first that suits.")
    minutes = models.FloatField(help_text="The most time it may take.")
    created = models.DateTimeField(auto_now_add=True)
    ended = models.DateTimeField(null=True)
    done = models.PositiveIntegerField(default=0)
    planned = models.PositiveIntegerField(default=0, help_text="0 while unknown.")
    doing = models.CharField(max_length=300, blank=True, help_text="A sentence or phrase.")
    error = models.TextField(blank=True)
    stored_results = models.JSONField(null=True, help_text="See `results`.")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"Sweep {self.pk} of {self.server}"

    @property
    def results(self) -> SweepResults | None:
        """All that was measured so far; None: nothing yet."""
        return SweepResults.from_json(self.stored_results) if self.stored_results else None


class DoctorRun(models.Model):
    """One examination of a server, of all its models in memory. It runs while its task does."""

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="doctor_runs")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    ended = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    stored_examinations = models.JSONField(default=list, help_text="See `doctor.examination`.")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"Examination {self.pk} of {self.server}"

    @property
    def examinations(self) -> list[Examination]:
        """One for each model; empty until the run has ended."""
        return from_json(self.stored_examinations)
