from typing import Any

from django.db import models

from apps.batch.models import Batch
from apps.core.models import Owned, OwnedQuerySet
from apps.generation.rows import Spec


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
