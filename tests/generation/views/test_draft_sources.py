"""The first draft of a new job, by the address of its page."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.batch.models import Batch
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation.models import Job, RecipeVersion
from apps.generation.recipe.library import versions
from apps.generation.recipe.library.starters import STARTERS
from apps.generation.recipe.parse import parse
from apps.generation.views.draft import Draft
from apps.servers.models import Server

RECIPE = {"system": "Write well.", "prompt": "Write.", "params": {"temperature": 0.4}}


def draft_of(client: Client, query: str = "") -> Draft:
    answer = client.get(f"/generate/new/?{query}")
    assert answer.status_code == 200
    draft: Draft = answer.context["draft"]
    return draft


@pytest.fixture
def version(alice: User, server: Server) -> RecipeVersion:
    return versions.save_version(
        owner=alice, name="Mine", recipe=parse(RECIPE), server=server, model="writer", keep=True
    )


@pytest.fixture
def dataset(alice: User) -> Dataset:
    rows = [ExampleRow(f"Text {n}", "ab"[n % 2], "test" if n < 2 else "train") for n in range(6)]
    return create_dataset(owner=alice, name="Mails", rows=rows, origin="x")


@pytest.mark.parametrize(
    "query", ["recipe=blank", "recipe=nothing", "like=x", "version=-1", "dataset="]
)
def test_an_address_without_a_source_is_an_empty_recipe(browser: Client, query: str) -> None:
    draft = draft_of(browser, query)
    assert json.loads(draft.recipe)["columns"] == [{"name": "text", "kind": "text", "prompt": ""}]
    assert (draft.name, draft.rows) == ("", "50")


@pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: starter.key)
def test_a_starter_fills_the_form(browser: Client, starter: Any) -> None:
    draft = draft_of(browser, f"recipe={starter.key}")
    assert draft.name == starter.name
    assert draft.read() is not None


def test_a_saved_recipe_with_its_model(
    browser: Client, version: RecipeVersion, server: Server
) -> None:
    draft = draft_of(browser, f"version={version.pk}")
    assert (draft.name, draft.system, draft.keep) == ("Mine", "Write well.", True)
    assert draft.params["temperature"] == "0.4"
    assert str(server.pk) in draft.target
    assert "writer" in draft.target
    assert draft.errors == {}
    page = browser.get(f"/generate/new/?version={version.pk}").content.decode()
    assert f'href="/generate/recipes/{version.saved_id}/"' in page


def test_a_saved_recipe_whose_server_was_removed(
    browser: Client, version: RecipeVersion, server: Server
) -> None:
    server.delete()
    draft = draft_of(browser, f"version={version.pk}")
    assert "was removed" in draft.errors["target"]


@pytest.mark.parametrize("name", ["like", "version", "dataset"])
def test_someone_elses_source_is_not_there(
    bobs_browser: Client, job: Job, version: RecipeVersion, dataset: Dataset, name: str
) -> None:
    key = {"like": job, "version": version, "dataset": dataset}[name].pk
    assert bobs_browser.get(f"/generate/new/?{name}={key}").status_code == 404


def test_an_earlier_job_with_its_limits(browser: Client, job: Job) -> None:
    Batch.objects.update(width=2, weight=3, daily_tokens=1000, goal=8)
    draft = draft_of(browser, f"like={job.pk}")
    assert (draft.name, draft.rows, draft.refill) == ("Reviews", "8", True)
    assert (draft.width, draft.weight, draft.daily_tokens) == ("2", "3", "1000")
    assert (draft.near, draft.meaning, draft.test_dataset) == ("", "", "")


def test_an_earlier_job_whose_server_was_removed(browser: Client, job: Job, server: Server) -> None:
    server.delete()
    draft = draft_of(browser, f"like={job.pk}")
    assert "was removed" in draft.errors["target"]


def test_an_earlier_job_whose_test_set_was_deleted(
    browser: Client, job: Job, dataset: Dataset
) -> None:
    Job.objects.update(test_dataset="Mails")
    assert draft_of(browser, f"like={job.pk}").test_dataset == str(dataset.pk)
    dataset.delete()
    assert draft_of(browser, f"like={job.pk}").test_dataset == ""


def test_more_rows_of_some_labels_of_a_dataset(browser: Client, dataset: Dataset) -> None:
    draft = draft_of(browser, f"dataset={dataset.pk}&label=a&label=a&label=unknown")
    assert (draft.name, draft.rows, draft.near) == ("More rows like Mails", "20", "85")
    assert draft.for_dataset == draft.test_dataset == str(dataset.pk)
    assert draft.for_classifier == ""
    assert draft.read() is not None


@pytest.mark.parametrize(("rows", "count"), [("30", "30"), ("0", "40"), ("x", "40"), ("", "40")])
def test_all_labels_of_a_dataset_and_a_number_of_rows(
    browser: Client, dataset: Dataset, rows: str, count: str
) -> None:
    assert draft_of(browser, f"dataset={dataset.pk}&rows={rows}").rows == count


def test_the_test_rows_of_another_dataset(
    browser: Client, dataset: Dataset, alice: User, bob: User
) -> None:
    made = {"rows": [ExampleRow("T", "a")], "origin": "x"}
    other = create_dataset(owner=alice, name="Tests", **made)
    assert draft_of(browser, f"dataset={dataset.pk}&test={other.pk}").test_dataset == str(other.pk)
    theirs = create_dataset(owner=bob, name="Bob's", **made)
    address = f"/generate/new/?dataset={dataset.pk}&test={theirs.pk}"
    assert browser.get(address).status_code == 404
