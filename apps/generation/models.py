from django.db import models
from django.utils.functional import cached_property

from apps.batch.models import Batch
from apps.core.fields import OrderedJSONField
from apps.core.models import Owned, OwnedQuerySet
from apps.core.schemas.json_types import JsonObject
from apps.datasets.models import Dataset
from apps.generation.recipe.spec import Spec
from apps.servers.models import Server


class StoredRows(Owned):
    """Real rows as a job was given them: what becomes of their dataset changes the job no more."""

    origin = models.CharField(max_length=300, help_text="Where they came from, in words.")
    count = models.PositiveIntegerField()
    rows = OrderedJSONField(help_text="A list of objects, field to text.")

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.count} rows: {self.origin}"


class SavedRecipe(Owned):
    """A recipe under a name. What was changed is a new version; the old ones stay as they were."""

    name = models.CharField(max_length=200)
    kept = models.BooleanField(
        default=False, help_text="Saved on purpose, so the page lists it; else a job left it."
    )
    server = models.ForeignKey(
        Server, on_delete=models.SET_NULL, null=True, related_name="+", help_text="Empty: default."
    )
    model = models.CharField(max_length=300, blank=True, default="")

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="recipe_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def lost_its_server(self) -> bool:
        """True if the server of its model was removed; a recipe of the default names no model."""
        return bool(self.model) and self.server_id is None


class RecipeVersion(models.Model):
    saved = models.ForeignKey(SavedRecipe, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    body = OrderedJSONField(help_text="The recipe as JSON, as the API takes it.")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["saved", "number"], name="one_recipe_version")
        ]

    def __str__(self) -> str:
        return f"{self.saved}, version {self.number}"


class Job(Owned):
    """A synthetic data set in the making. What the pump needs of it is in `batch.spec`."""

    name = models.CharField(max_length=200)
    version = models.ForeignKey(
        RecipeVersion, on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs"
    )
    test_dataset = models.CharField(
        max_length=200, blank=True, help_text="The name of the test set nothing may repeat."
    )
    for_dataset = models.ForeignKey(
        Dataset,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The dataset that it was begun to make more rows for.",
    )
    for_classifier = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The classifier whose mistakes it was begun from."
    )
    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="job")

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def spec(self) -> Spec:
        """The stored spec, parsed once."""
        return Spec.read(self.batch.spec)

    @property
    def recipe(self) -> JsonObject:
        """The recipe as JSON, as the API takes it."""
        recipe: JsonObject = self.batch.spec["recipe"]
        return recipe
