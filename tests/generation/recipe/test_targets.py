"""Which server and model write the rows: chosen on the page, kept by clones, recipes and jobs."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.generation.models import Job, RecipeVersion, SavedRecipe
from apps.generation.recipe import targets
from apps.servers.models import Server, State
from apps.servers.services import NoServer
from tests.generation.views.test_editor import FORM
from tests.markup import one_line, visible_text

pytestmark = pytest.mark.django_db

MODELS = [
    {"id": "writer", "state": "loaded"},
    {"id": "other", "state": "unloaded"},
    {"id": "vectors", "embeddings": True},
    {"id": "text-embedding-strict"},
]


@pytest.fixture
def second(server: Server) -> Server:
    return Server.objects.create(
        name="Second",
        base_url="http://127.0.0.1:1/v1",
        state=State.UNREACHABLE,
        parallel=2,
        stored_facts={"models": MODELS},
    )


def the_draft(browser: Client, query: str) -> Any:
    return browser.get(f"/generate/new/?{query}").context["draft"]


def test_servers_and_models_that_write_with_their_states(browser: Client, second: Server) -> None:
    groups = targets.model_choices("").groups
    found = {group.label: [option.label for option in group.options] for group in groups}
    assert found["Second · offline"] == ["writer · 2 slots", "other · not loaded · 2 slots"]
    assert found["Chat · not checked"] == ["Its first model"]
    page = browser.get("/generate/new/?recipe=blank").content.decode()
    assert "Default (Chat)" in page
    assert f'value="{second.pk}:writer"' in page


def test_a_server_of_embeddings_alone_is_not_offered(embedding_server: Server) -> None:
    embedding_server.stored_facts = {"models": [{"id": "minilm-l6"}, {"id": "whatever"}]}
    embedding_server.save()
    assert targets.model_choices("").groups == []


def test_a_job_is_asked_of_what_was_chosen_and_says_so(browser: Client, second: Server) -> None:
    browser.post("/generate/new/", FORM | {"target": f"{second.pk}:writer", "keep": "1"})
    job = Job.objects.get()
    assert (job.batch.server, job.batch.model) == (second, "writer")
    url = f"/generate/{job.pk}/"
    for page in (url, f"{url}cards/", f"{url}review/", f"{url}rows/0/"):
        text = visible_text(browser.get(page).content.decode())
        assert "writer · Second" in text, page


def test_a_clone_a_recipe_and_run_again_keep_it(browser: Client, second: Server) -> None:
    chosen = f"{second.pk}:writer"
    browser.post("/generate/new/", FORM | {"target": chosen, "keep": "1"})
    job = Job.objects.get()
    assert the_draft(browser, f"like={job.pk}").target == chosen
    assert job.version is not None
    assert the_draft(browser, f"version={job.version.pk}").target == chosen
    browser.post(f"/generate/{job.pk}/duplicate/")
    again = Job.objects.latest("pk")
    assert (again.batch.server, again.batch.model) == (second, "writer")


def test_a_model_that_is_gone_stays_chosen_and_is_marked(browser: Client, second: Server) -> None:
    browser.post("/generate/new/", FORM | {"target": f"{second.pk}:gone"})
    page = browser.get(f"/generate/new/?like={Job.objects.get().pk}").content.decode()
    assert f'<option value="{second.pk}:gone" selected>gone · not available now' in one_line(page)


def test_a_server_that_is_gone_is_said_at_the_field(browser: Client, second: Server) -> None:
    answer = browser.post("/generate/new/", FORM | {"target": "999:writer"})
    assert answer.status_code == 422
    assert "removed" in answer.context["draft"].errors["target"]
    browser.post("/generate/new/", FORM | {"target": f"{second.pk}:writer"})
    second.delete()
    draft = the_draft(browser, f"like={Job.objects.get().pk}")
    assert draft.target == ""
    assert "was removed" in draft.errors["target"]


def test_a_recipe_whose_server_is_gone_says_so(browser: Client, second: Server) -> None:
    browser.post("/generate/new/", FORM | {"target": f"{second.pk}:writer", "keep": "1"})
    second.delete()
    draft = the_draft(browser, f"version={RecipeVersion.objects.get().pk}")
    assert (draft.target, SavedRecipe.objects.get().lost_its_server) == ("", True)
    assert "was removed" in draft.errors["target"]


def test_a_model_without_a_server_keeps_the_server_it_was_asked_of(
    api: Client, server: Server
) -> None:
    body = {"name": "A", "rows": 1, "recipe": {"prompt": "Write."}, "model": "chosen"}
    api.post("/api/v1/jobs", body, content_type="application/json")
    saved = SavedRecipe.objects.get()
    assert (saved.server, saved.model, saved.lost_its_server) == (server, "chosen", False)


def test_the_default_stays_the_default_in_a_recipe(browser: Client, second: Server) -> None:
    browser.post("/generate/new/", FORM | {"keep": "1"})
    saved = SavedRecipe.objects.get()
    assert (saved.server, saved.kept) == (None, True)


def test_a_job_leaves_no_recipe_in_the_list_unless_it_is_saved(
    browser: Client, api: Client, server: Server
) -> None:
    browser.post("/generate/new/", FORM)
    assert "No saved recipes yet" in browser.get("/generate/").content.decode()
    browser.post("/generate/new/", FORM | {"keep": "1"})
    assert "No saved recipes yet" not in browser.get("/generate/").content.decode()
    browser.post("/generate/new/", FORM)  # one that is listed stays listed
    assert "Version 1 · " in visible_text(browser.get("/generate/new/").content.decode())
    body = {"name": "Kept", "rows": 1, "recipe": {"prompt": "Write."}, "keep_recipe": True}
    api.post("/api/v1/jobs", body, content_type="application/json")
    assert SavedRecipe.objects.get(name="Kept").kept


def test_run_again_asks_before_a_large_job(browser: Client, second: Server) -> None:
    for rows, asks in (("12", False), ("500", True)):
        browser.post("/generate/new/", FORM | {"rows": rows, "target": f"{second.pk}:writer"})
        page = browser.get(f"/generate/{Job.objects.latest('pk').pk}/").content.decode()
        assert (f"Run this job again? {rows} rows" in page) is asks


def test_a_program_without_a_server_gets_the_model_of_the_default(
    api: Client, server: Server
) -> None:
    server.defaults.filter(use="generation").update(model="chosen")
    body = {"name": "A", "rows": 1, "recipe": {"prompt": "Write."}}
    made = api.post("/api/v1/jobs", body, content_type="application/json").json()
    found = api.get(f"/api/v1/jobs/{made['id']}").json()
    assert (found["server"], found["server_name"], found["model"]) == (server.pk, "Chat", "chosen")


def test_no_server_at_all_is_a_sentence(browser: Client, alice: User) -> None:
    answer = browser.post("/generate/new/", FORM)
    assert "No server set for generation" in answer.context["draft"].errors["target"]
    assert "no server is set" in answer.content.decode()
    with pytest.raises(NoServer):
        targets.target_of_choice("")
