"""A chat model on the test rows of a run."""

from django.db import models

from apps.batch.models import Batch
from apps.classifiers.models.run import Run


class ChatTest(models.Model):
    """A chat model that labels test rows of a run, as a batch job: see `chat_labels`."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="chat_tests")
    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="+")
    shots = models.PositiveSmallIntegerField(help_text="Examples a label in the prompt.")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.batch.model}, {self.shots} examples a label"
