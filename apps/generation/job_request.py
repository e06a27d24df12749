"""A job as the page or the API asks for it."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from apps.batch.services import wake_pump
from apps.datasets.models import Dataset
from apps.generation import services
from apps.generation.models import Job
from apps.generation.recipe import targets, versions
from apps.generation.recipe.recipe import Recipe
from apps.servers.models import Server
from apps.servers.services import Target


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """Checked, but not yet whether its dataset exists."""

    name: str
    rows: int
    seed: int
    recipe: Recipe
    refill: bool = False
    near: float | None = None
    """See `services.create_job`, from 0 to 1."""
    meaning: float | None = None
    test_dataset: int | None = None
    width: int | None = None
    weight: int = 1
    daily_tokens: int | None = None
    all_servers: bool = False
    """Every server with the same model works on it."""
    keep_recipe: bool = False
    """List the recipe among the person's own."""


@dataclass(frozen=True)
class RecipeModel:
    """Server and model to store with the recipe; empty for the defaults."""

    server: Server | None = None
    name: str = ""


def submit(
    request: JobRequest,
    *,
    owner: User,
    target: Target,
    recipe_model: RecipeModel,
    for_dataset: Dataset | None = None,
    for_classifier: int | None = None,
) -> Job:
    """Creates the job, saves its recipe as a version, and wakes the worker.

    Raises:
        Dataset.DoesNotExist: no such test dataset.
        RecipeError: see `services.create_job`.
    """
    test_dataset = None
    if request.test_dataset is not None:
        test_dataset = Dataset.objects.owned_by(owner).get(pk=request.test_dataset)
    job = services.create_job(
        owner=owner,
        name=request.name,
        rows=request.rows,
        seed=request.seed,
        recipe=request.recipe,
        server=target.server,
        model=targets.stored_model(target),
        refill=request.refill,
        near=request.near,
        meaning=request.meaning,
        test_dataset=test_dataset,
        width=request.width,
        weight=request.weight,
        daily_tokens=request.daily_tokens,
        all_servers=request.all_servers,
        for_dataset=for_dataset,
        for_classifier=for_classifier,
        version=lambda: versions.save_version(
            owner=owner,
            name=request.name,
            recipe=request.recipe,
            server=recipe_model.server,
            model=recipe_model.name,
            keep=request.keep_recipe,
        ),
    )
    wake_pump(target.server.pk)
    return job
