"""A job as the page or the API submits it."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Dataset
from apps.generation.job_request import JobRequest, RecipeModel
from apps.generation.models import Job, RecipeVersion
from apps.generation.recipe.parse import parse
from apps.generation.recipe.problems import RecipeError
from apps.generation.services import submit
from apps.servers.models import Server
from apps.servers.services import Target
from tests.generation.recipe.test_parse import REVIEWS

REQUEST = JobRequest(name="Reviews", rows=200, seed=7, recipe=parse(REVIEWS, rows=200))


@pytest.fixture
def target(server: Server) -> Target:
    return Target(server, "default")


def test_creates_the_job_and_saves_its_recipe(alice: User, target: Target) -> None:
    request = replace(REQUEST, near=0.85, width=2, weight=3, daily_tokens=1000, refill=True)
    job = submit(request, owner=alice, target=target, recipe_model=RecipeModel())
    assert (job.owner, job.name, job.batch.server) == (alice, "Reviews", target.server)
    assert (job.batch.width, job.batch.weight, job.batch.daily_tokens) == (2, 3, 1000)
    assert job.batch.goal == 200
    assert job.spec.seed == 7
    assert job.spec.filters.near == 0.85
    assert job.spec.recipe == REQUEST.recipe
    assert job.version is not None
    assert (job.version.number, job.version.saved.kept) == (1, False)
    assert job.version.saved.server is None


def test_the_recipe_keeps_the_model_that_was_chosen(alice: User, target: Target) -> None:
    job = submit(
        replace(REQUEST, keep_recipe=True),
        owner=alice,
        target=target,
        recipe_model=RecipeModel(target.server, "writer"),
    )
    assert job.version is not None
    saved = job.version.saved
    assert (saved.server, saved.model, saved.kept) == (target.server, "writer", True)


def test_a_refused_job_leaves_nothing(alice: User, target: Target) -> None:
    request = replace(REQUEST, meaning=0.9)  # without an embedding server
    with pytest.raises(RecipeError, match="needs an embedding server"):
        submit(request, owner=alice, target=target, recipe_model=RecipeModel())
    assert not Job.objects.exists()
    assert not RecipeVersion.objects.exists()


def test_someone_elses_test_dataset_does_not_exist(alice: User, bob: User, target: Target) -> None:
    dataset = Dataset.objects.create(owner=bob, name="D")
    request = replace(REQUEST, test_dataset=dataset.pk)
    with pytest.raises(Dataset.DoesNotExist):
        submit(request, owner=alice, target=target, recipe_model=RecipeModel())
    assert not Job.objects.exists()
