"""The recipe builder: a new job, what is wrong with it, and a preview of its rows."""

import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.utils.html import escape

from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation.models import Job, SavedRecipe
from apps.generation.recipe import parse as recipes
from apps.generation.recipe.library.starters import STARTERS
from apps.generation.recipe.prompts import templates
from apps.servers.models import Server

RECIPE: dict[str, Any] = {
    "columns": [
        {"name": "sentiment", "kind": "category", "values": ["positive", "negative"]},
        {"name": "product", "kind": "category", "values": ["kettle", "lamp, small"]},
        {
            "name": "row",
            "kind": "structured",
            "prompt": "Write a {{ sentiment }} review of a {{ product }}.",
            "schema": {
                "type": "object",
                "required": ["text"],
                "properties": {
                    "text": {"type": "string", "maxLength": 300},
                    "label": {"type": "string", "enum": ["positive", "negative"]},
                },
            },
        },
    ]
}
FORM: dict[str, Any] = {
    "name": "My reviews",
    "system": "You write realistic synthetic data.",
    "recipe": json.dumps(RECIPE),
    "rows": "12",
    "temperature": "0,7",
    "max_tokens": "60",
    "min_p": "0.05",
    "seed": "3",
    "weight": "1",
    "refill": "1",
}


def changed(at: int, **parts: Any) -> str:
    """The recipe with one column changed."""
    columns = [dict(column) for column in RECIPE["columns"]]
    columns[at] |= parts
    return json.dumps({"columns": columns})


class TestNew:
    @pytest.mark.parametrize("starter", STARTERS, ids=lambda starter: starter.key)
    def test_a_ready_recipe_can_be_queued_as_it_is(
        self, browser: Client, server: Server, starter: Any
    ) -> None:
        draft = browser.get(f"/generate/new/?recipe={starter.key}").context["draft"]
        names = ("name", "system", "recipe", "rows", "seed")
        data = {name: getattr(draft, name) for name in names} | draft.params
        answer = browser.post("/generate/new/", data)
        assert answer.status_code == 302, answer.context["draft"].problems
        stored = Job.objects.get().recipe
        prompts = [column.get("prompt") for column in stored["columns"]]
        wanted = starter.recipe.get("prompt") or starter.recipe["columns"][-1].get("prompt")
        assert wanted in prompts

    def test_queues_a_job(self, browser: Client, server: Server) -> None:
        answer = browser.post("/generate/new/", FORM)
        job = Job.objects.get()
        assert answer["location"] == f"/generate/{job.pk}/"
        assert (job.name, job.batch.goal, job.batch.status) == ("My reviews", 12, "queued")
        assert job.batch.items.count() == 12
        assert job.recipe["columns"] == RECIPE["columns"]
        assert job.recipe["params"] == {"temperature": 0.7, "min_p": 0.05, "max_tokens": 60}
        assert job.version is not None
        assert job.version.number == 1

    def test_a_job_that_is_refused_leaves_no_recipe(self, browser: Client, server: Server) -> None:
        answer = browser.post("/generate/new/", FORM | {"meaning": "90", "keep": "1"})
        assert answer.status_code == 422
        assert "needs an embedding server" in answer.content.decode()
        assert not SavedRecipe.objects.exists()

    def test_a_changed_recipe_is_a_new_version(self, browser: Client, server: Server) -> None:
        for form in (FORM, FORM, FORM | {"system": "Other."}):
            browser.post("/generate/new/", form | {"keep": "1"})
        numbers = [job.version.number for job in Job.objects.order_by("pk") if job.version]
        assert numbers == [1, 1, 2]
        page = browser.get("/generate/").content.decode()
        assert ">v2<" in page
        newest = Job.objects.latest("pk").version
        assert newest is not None
        draft = browser.get(f"/generate/new/?version={newest.pk}").context["draft"]
        assert draft.system == "Other."
        assert browser.post(f"/generate/recipes/{newest.saved_id}/delete/").status_code == 302
        assert Job.objects.count() == 3

    def test_limits_and_filters(self, browser: Client, server: Server) -> None:
        more = {"near": "85", "width": "2", "weight": "3", "daily_tokens": "5000"}
        browser.post("/generate/new/", FORM | more)
        job = Job.objects.get()
        assert job.spec.filters.near == 0.85
        batch = job.batch
        assert (batch.width, batch.weight, batch.daily_tokens) == (2, 3, 5000)
        draft = browser.get(f"/generate/new/?like={job.pk}").context["draft"]
        assert (draft.near, draft.width, draft.weight, draft.refill) == ("85", "2", "3", True)

    @pytest.mark.parametrize(
        ("change", "place", "sentence"),
        [
            ({"name": " "}, "name", "Enter a job name"),
            ({"rows": "0"}, "rows", "Enter an integer from 1 to 100,000"),
            ({"rows": "many"}, "rows", "Enter an integer"),
            ({"rows": "9" * 400}, "rows", "Enter an integer"),
            ({"seed": "-1"}, "seed", "Enter an integer"),
            ({"temperature": "warm"}, "temperature", "Enter a number, such as 0.9"),
            ({"temperature": "7"}, "temperature", "from 0 to 5"),
            ({"max_tokens": "x"}, "max_tokens", "Enter a number"),
            ({"max_tokens": "1.5"}, "max_tokens", "whole number"),
            ({"near": "20"}, "near", "from 50 to 100"),
            ({"width": "0"}, "width", "Enter an integer"),
            ({"daily_tokens": "x"}, "daily_tokens", "Enter an integer"),
            ({"system": "{{ product }}"}, "system", "the same for every row"),
            ({"recipe": "{"}, "columns", "not valid JSON"),
            ({"recipe": "[" * 100_000}, "columns", "not valid JSON"),
            ({"recipe": "[]"}, "columns", "a JSON object"),
            ({"recipe": "{}"}, "columns", "Enter a prompt"),
        ],
    )
    def test_says_at_the_field_what_is_wrong(
        self, browser: Client, server: Server, change: dict[str, Any], place: str, sentence: str
    ) -> None:
        answer = browser.post("/generate/new/", FORM | change)
        assert answer.status_code == 422
        assert sentence in answer.context["draft"].errors[place]
        assert FORM["system"] in answer.content.decode() or "system" in change
        assert not Job.objects.exists()

    @pytest.mark.parametrize(
        ("recipe", "place", "sentence"),
        [
            (changed(2, prompt=""), "columns.2.prompt", "Enter a prompt"),
            (changed(2, prompt="a\n{{ colour }}"), "columns.2.prompt", "Line 2: no colu"),
            (
                changed(2, prompt="{{ ''.__class__ }}"),
                "columns.2.prompt",
                "not support attributes",
            ),
            (changed(0, values=[]), "columns.0", "“sentiment” needs at least one"),
            (changed(0, name="product"), "columns.1", "Two columns"),
            (changed(2, schema={"type": "object"}), "columns.2.schema", "no field"),
        ],
    )
    def test_says_at_the_column_what_is_wrong(
        self, browser: Client, server: Server, recipe: str, place: str, sentence: str
    ) -> None:
        answer = browser.post("/generate/new/", FORM | {"recipe": recipe})
        assert answer.status_code == 422
        found = dict(answer.context["problems"])
        assert sentence in found[place]
        assert f'data-place="{place}"' in answer.content.decode()

    def test_checks_while_one_types(self, browser: Client) -> None:
        page = browser.post(
            "/generate/check/", FORM | {"recipe": changed(2, prompt="{{ x }}")}
        ).content.decode()
        assert 'data-place="columns.2.prompt">Line 1: no column “x”' in page
        assert 'id="error-rows"></p>' in page
        assert browser.get("/generate/check/").status_code == 405

    def test_more_of_a_datasets_weak_labels(
        self, browser: Client, alice: User, server: Server
    ) -> None:
        rows = [ExampleRow(f"Text {n} of {'ab'[n % 2]}", "ab"[n % 2]) for n in range(20)]
        dataset = create_dataset(owner=alice, name="Real", rows=rows, origin="a test")
        address = f"/generate/new/?dataset={dataset.pk}&label=b&label=zz&rows=6&test={dataset.pk}"
        draft = browser.get(address).context["draft"]
        recipe = json.loads(draft.recipe)
        assert recipe["columns"][0]["values"] == ["b"]
        assert recipe["quotas"] == {"label": {"b": 6}}
        assert (draft.rows, draft.test_dataset) == ("6", str(dataset.pk))
        names = ("name", "system", "recipe", "rows", "seed", "test_dataset", "near")
        data = {name: getattr(draft, name) for name in names} | draft.params
        assert browser.post("/generate/new/", data).status_code == 302
        job = Job.objects.get()
        assert (job.test_dataset, job.batch.total) == ("Real", 6)

    def test_not_of_anothers_dataset(self, browser: Client, bob: User, server: Server) -> None:
        dataset = create_dataset(
            owner=bob, name="Bob's", rows=[ExampleRow("Secret", "a")], origin="a test"
        )
        assert browser.get(f"/generate/new/?dataset={dataset.pk}").status_code == 404
        form = FORM | {"test_dataset": str(dataset.pk)}
        assert browser.post("/generate/new/", form).status_code == 404
        page = browser.get("/generate/new/?recipe=blank").content.decode()
        assert "Bob" not in page

    def test_without_a_server(self, browser: Client) -> None:
        answer = browser.post("/generate/new/", FORM)
        assert answer.status_code == 422
        assert "Choose one under Servers" in answer.content.decode()

    def test_like_an_earlier_job(self, browser: Client, job: Job) -> None:
        draft = browser.get(f"/generate/new/?like={job.pk}").context["draft"]
        assert (draft.name, draft.rows) == ("Reviews", "10")
        columns = json.loads(draft.recipe)["columns"]
        assert [column["name"] for column in columns] == ["sentiment", "product", "row"]
        assert list(columns[2]["schema"]["properties"]) == ["text", "label"]

    def test_like_a_job_that_repeats_nothing_of_a_test_set(
        self, browser: Client, alice: User, job: Job
    ) -> None:
        Job.objects.update(test_dataset="Real")
        draft = browser.get(f"/generate/new/?like={job.pk}").context["draft"]
        assert draft.test_dataset == ""  # it is there no more
        rows = [ExampleRow("Real", "a")]
        real = create_dataset(owner=alice, name="Real", rows=rows, origin="a test")
        draft = browser.get(f"/generate/new/?like={job.pk}").context["draft"]
        assert draft.test_dataset == str(real.pk)

    def test_not_like_anothers(self, bobs_browser: Client, job: Job) -> None:
        assert bobs_browser.get(f"/generate/new/?like={job.pk}").status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_closed_connections")
class TestPreview:
    async def test_shows_three_real_rows(self, async_browser: AsyncClient, server: Server) -> None:
        answer = await async_browser.post("/generate/preview/", FORM)
        page = answer.content.decode()
        rows = answer.context["rows"]
        assert len(rows) == 3
        assert all(row.outcome and row.outcome.usage.completion_tokens for row in rows)
        assert "Write a" in page
        accepted = [row for row in rows if not row.outcome.reason]
        assert accepted
        texts = [row.outcome.output["text"] for row in accepted if row.outcome]
        assert all(escape(text) in page for text in texts)
        assert "Prompt tokens (uncached)" in page
        assert answer.context["estimate"].rows == 12
        assert answer.context["estimate"].output_tokens > 0
        assert await Job.objects.acount() == 0

    async def test_what_is_wrong_goes_to_its_field(
        self, async_browser: AsyncClient, server: Server
    ) -> None:
        form = FORM | {"recipe": changed(2, prompt="{{ x }}")}
        page = (await async_browser.post("/generate/preview/", form)).content.decode()
        assert 'data-place="columns.2.prompt">Line 1: no column “x”' in page
        assert 'id="error-rows"></p>' in page

    async def test_a_server_that_is_away(self, async_browser: AsyncClient, server: Server) -> None:
        server.base_url = "http://127.0.0.1:9/v1"
        await server.asave()
        page = (await async_browser.post("/generate/preview/", FORM)).content.decode()
        assert "not responding" in page

    async def test_without_a_server(self, async_browser: AsyncClient) -> None:
        page = (await async_browser.post("/generate/preview/", FORM)).content.decode()
        assert "Choose one under Servers" in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_closed_connections")
async def test_a_preview_keeps_the_event_loop_for_nobody(
    async_browser: AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the recipe nor its templates are worked out on the thread of the loop."""
    threads: list[threading.Thread] = []

    def noting(told: Any) -> Any:
        def noted(*given: Any, **named: Any) -> Any:
            threads.append(threading.current_thread())
            return told(*given, **named)

        return noted

    monkeypatch.setattr(recipes, "parse", noting(recipes.parse))
    monkeypatch.setattr(templates, "render", noting(templates.render))
    answer = await async_browser.post("/generate/preview/", FORM)
    assert answer.context["rows"]
    assert len(threads) >= 4
    assert threading.current_thread() not in threads
