"""Starting a generation job, for the model a person talks to. It asks first."""

import secrets
from typing import NotRequired, TypedDict

from django.contrib.auth.models import User

from apps.batch.services import wake_pump
from apps.core.tools import ToolError
from apps.generation import services
from apps.generation.job_request import JobRequest
from apps.generation.models import SavedRecipe
from apps.generation.recipe import parse as recipes
from apps.generation.recipe import targets
from apps.generation.recipe.problems import RecipeError
from apps.generation.recipe.recipe import MAX_SEED
from apps.runtime.async_db import in_db
from apps.servers.services import NoServer

NAMED_AT_MOST = 50


class NewJob(TypedDict):
    recipe: str
    rows: int
    name: NotRequired[str]


async def start_generation_job(user: User, arguments: NewJob) -> str:
    """Queues a job of a saved recipe, at its newest version."""
    return await in_db(_start, user, arguments)


def _start(user: User, arguments: NewJob) -> str:
    name, rows = arguments["recipe"].strip(), arguments["rows"]
    named = SavedRecipe.objects.owned_by(user).filter(name__iexact=name)
    saved = named.select_related("server").first()
    version = saved.versions.first() if saved else None
    if saved is None or version is None:
        raise ToolError(f"No saved recipe “{name}”. {_listed(user)}")
    if saved.lost_its_server:
        raise ToolError(
            f"The model server of “{saved.name}” was removed. Its owner can open the recipe on the "
            "page Generate, choose another model and save it."
        )
    try:
        target = targets.requested_target(saved.server, saved.model)
        request = JobRequest(
            name=(arguments.get("name") or saved.name)[:200],
            rows=rows,
            seed=secrets.randbelow(MAX_SEED),
            recipe=recipes.parse(version.body, rows=rows),
        )
        job = services.create_job(
            request,
            owner=user,
            server=target.server,
            model=targets.stored_model(target),
            version=version,
        )
    except (RecipeError, NoServer) as error:
        raise ToolError(str(error)) from error
    wake_pump(target.server.pk)
    return f"Started job {job.pk}: “{job.name}”, {rows:,} rows. See the Generate page."


def _listed(user: User) -> str:
    saved = SavedRecipe.objects.owned_by(user).order_by("-kept", "-pk")  # saved on purpose first
    names = saved.values_list("name", flat=True)[:NAMED_AT_MOST]
    listed = ", ".join(f"“{name}”" for name in names)
    return f"There are: {listed}." if listed else "This person has saved no recipe yet."
