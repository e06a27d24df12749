"""A classifier: its datasets, its embedding model and its live version."""

from typing import ClassVar, Self

from django.db import models

from apps.core.models import Owned, OwnedQuerySet
from apps.datasets.models import Dataset
from apps.servers.models import Server


class ClassifierQuerySet(OwnedQuerySet["Classifier"]):
    def for_prediction(self) -> Self:
        """Select the fields that `predict.load_classifier` reads, and no more."""
        # Not with all of its run: what that knows of its rows takes longer to read than a
        # prediction may.
        return self.select_related("server", "current").only(
            *("owner_id", "name", "model", "server", "current"),
            *(f"server__{field.attname}" for field in Server._meta.concrete_fields),
            *("current__number", "current__thresholds", "current__classifier_id"),
        )


class Classifier(Owned):
    name = models.CharField(max_length=200)
    # A classifier goes on working when what it was trained on is deleted.
    dataset = models.ForeignKey(Dataset, null=True, on_delete=models.SET_NULL, related_name="+")
    test_dataset = models.ForeignKey(
        Dataset, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    server = models.ForeignKey(Server, null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.CharField(max_length=300, blank=True)
    options = models.JSONField(
        default=dict,
        help_text="seed, balanced, what embeddings.Preparation knows, and the chosen gates.",
    )
    pinned = models.BooleanField(
        default=False, help_text="A person chose the run that answers: a newer one waits."
    )
    current = models.ForeignKey(
        "Run",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The run whose classifier answers: the newest that is ready.",
    )

    objects: ClassVar[ClassifierQuerySet] = ClassifierQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name
