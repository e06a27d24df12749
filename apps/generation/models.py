from typing import Any

from django.db import models

from apps.batch.fields import OrderedJSONField
from apps.batch.models import Batch
from apps.core.models import Owned, OwnedQuerySet
from apps.generation.spec import Spec


class StoredRows(Owned):
    """Real rows as a job was given them: what becomes of their dataset changes the job no more."""

    origin = models.CharField(max_length=300, help_text="Where they came from, in words.")
    count = models.PositiveIntegerField()
    rows = OrderedJSONField(help_text="A list of objects, field to text.")

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.count} rows: {self.origin}"


class Job(Owned):
    """A synthetic data set in the making. What the pump needs of it is in `batch.spec`."""

    name = models.CharField(max_length=200)
    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="job")

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def spec(self) -> Spec:
        return Spec.read(self.batch.spec)

    @property
    def recipe(self) -> dict[str, Any]:
        """In the API's words."""
        recipe: dict[str, Any] = self.batch.spec["recipe"]
        return recipe
