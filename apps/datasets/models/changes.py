"""Changes of a dataset: its revisions and the rows each changed."""

from django.conf import settings
from django.db import models

from apps.datasets.models.datasets import Dataset


class Revision(models.Model):
    """A change of a dataset that Undo reverts. Numbers have no gaps."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    what = models.CharField(max_length=300, help_text='A sentence: "Row 7: a became b."')
    created = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    rows = models.PositiveIntegerField(default=0, help_text="How many rows it changed.")
    undoes = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="+")
    undone = models.BooleanField(default=False)
    complete = models.BooleanField(
        default=True, help_text="Whether all its rows are changed: else it is no version yet."
    )

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="revision_number")
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.what}"


class Change(models.Model):
    """A revision's change of one row. Never altered: any version can be read again from these."""

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="changes")
    index = models.PositiveIntegerField()
    before = models.JSONField(null=True, help_text="The fields that changed; null: no such row.")
    after = models.JSONField(null=True)

    class Meta:
        indexes = [models.Index(fields=["revision", "index"], name="change_row")]

    def __str__(self) -> str:
        return f"Row {self.index + 1}"
