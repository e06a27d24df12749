"""Starting a job from a conversation."""

import pytest
from django.contrib.auth.models import User

from apps.core import tools
from apps.core.tools import ToolError
from apps.generation.chat_tools import start_generation_job
from apps.generation.models import Job
from apps.generation.recipe.library import versions
from apps.generation.recipe.parse import parse
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.conftest import NOBODY
from tests.generation.recipe.test_parse import REVIEWS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def second(server: Server) -> Server:
    return Server.objects.create(name="Second", base_url="http://127.0.0.1:9/v1")


@pytest.fixture
def recipe(alice: User) -> None:
    versions.save_version(owner=alice, name="Reviews", recipe=parse(REVIEWS))


async def test_start_generation_job_creates_a_job(
    alice: User, server: Server, recipe: None
) -> None:
    said = await start_generation_job(alice, {"recipe": "reviews", "rows": 200})
    job = await Job.objects.select_related("batch", "version").aget()
    assert said.startswith(f"Started job {job.pk}")
    assert (job.owner_id, job.name, job.batch.wanted) == (alice.pk, "Reviews", 200)
    assert job.version is not None


async def test_recipe_tool_hides_recipes_of_others(bob: User, server: Server, recipe: None) -> None:
    with pytest.raises(ToolError, match="saved no recipe yet"):
        await start_generation_job(bob, {"recipe": "Reviews", "rows": 200})
    assert not await Job.objects.aexists()


async def test_a_name_that_is_wrong_is_answered_with_those_that_are_right(
    alice: User, server: Server, recipe: None
) -> None:
    with pytest.raises(ToolError, match="There are: “Reviews”"):
        await start_generation_job(alice, {"recipe": "Opinions", "rows": 200})


async def test_without_a_server(alice: User, recipe: None) -> None:
    with pytest.raises(ToolError):
        await start_generation_job(alice, {"recipe": "Reviews", "rows": 200})


async def test_without_the_server_it_was_saved_for(
    alice: User, server: Server, second: Server
) -> None:
    """Its model means nothing to the default server."""
    body = parse(REVIEWS)
    await in_db(
        lambda: versions.save_version(
            owner=alice, name="R", recipe=body, server=second, model="writer"
        )
    )
    await second.adelete()
    with pytest.raises(ToolError, match="server of “R” was removed"):
        await start_generation_job(alice, {"recipe": "R", "rows": 2})
    assert not await Job.objects.aexists()


def test_start_generation_job_needs_approval() -> None:
    (tool,) = [tool for tool in tools.available(NOBODY) if tool.name == "start_generation_job"]
    assert tool.needs_approval
