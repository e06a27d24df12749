"""The pages of jobs and their rows."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.generation.models import Job
from apps.generation.recipe.library.starters import STARTERS
from apps.servers.models import Server
from tests.generation.conftest import body_of, finish, new_job


class TestIndex:
    def test_index_without_jobs_offers_the_first(self, browser: Client) -> None:
        page = browser.get("/generate/").content.decode()
        assert "No jobs yet" in page
        assert "Create your first job" in page
        for starter in STARTERS:
            assert starter.name in page

    def test_shows_jobs_with_their_states(self, browser: Client, job: Job) -> None:
        page = browser.get("/generate/").content.decode()
        assert "Reviews" in page
        assert "5 of 10" in page
        assert 'hx-trigger="every 3s"' in page

    def test_stops_asking_when_nothing_runs(self, browser: Client, job: Job) -> None:
        Batch.objects.update(status=BatchStatus.DONE)
        page = browser.get("/generate/", headers={"HX-Request": "true"}).content.decode()
        assert "hx-trigger" not in page
        assert "<html" not in page

    def test_not_anothers(self, bobs_browser: Client, job: Job) -> None:
        assert "No jobs yet" in bobs_browser.get("/generate/").content.decode()

    def test_the_number_of_queries_does_not_grow(
        self, browser: Client, alice: User, server: Server
    ) -> None:
        counted = []
        for _ in range(2):
            new_job(alice, server)
            with CaptureQueriesContext(connection) as queries:
                browser.get("/generate/")
            counted.append(len(queries))
        assert counted[0] == counted[1]


class TestJob:
    def test_job_page_shows_rows_reasons_and_shares(self, browser: Client, job: Job) -> None:
        page = browser.get(f"/generate/{job.pk}/").content.decode()
        assert "of 10 accepted" in page
        assert 'id="accepted">5<' in page
        assert "83%" in page  # 250 of 300 tokens from the cache
        assert "Text 3." in page
        assert 'hx-trigger="every 1s"' in page
        quality = browser.get(f"/generate/{job.pk}/quality/").content.decode()
        assert "Max tokens reached" in quality
        assert "Server stopped responding" in quality

    def test_what_the_model_wrote_is_shown_as_text(self, browser: Client, job: Job) -> None:
        evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
        finish(
            job, 0, ItemStatus.ACCEPTED, output={"text": evil, "label": evil}, raw=evil, prompt=evil
        )
        for address in (f"/generate/{job.pk}/", f"/generate/{job.pk}/rows/0/"):
            page = browser.get(address).content.decode()
            assert "<img" not in page
            assert "<script>alert" not in page
            assert "&lt;img" in page

    def test_the_number_of_queries_does_not_grow(
        self, browser: Client, alice: User, server: Server
    ) -> None:
        counted = []
        for rows in (60, 3000):
            job = new_job(alice, server, rows)
            with CaptureQueriesContext(connection) as queries:
                browser.get(f"/generate/{job.pk}/")
            counted.append(len(queries))
        assert counted[0] == counted[1]

    def test_a_job_whose_server_was_removed(
        self, browser: Client, job: Job, server: Server
    ) -> None:
        server.delete()
        assert browser.get(f"/generate/{job.pk}/").status_code == 200


class TestProgress:
    def test_stops_when_it_is_done(self, browser: Client, job: Job) -> None:
        live = browser.get(f"/generate/{job.pk}/progress/?was=running")
        assert b"every 1s" in live.content
        assert b'id="job-tag"' not in live.content
        assert "HX-Trigger" not in live
        Item.objects.filter(index__gte=7).update(status=ItemStatus.ACCEPTED)
        Batch.objects.update(status=BatchStatus.DONE)
        done = browser.get(f"/generate/{job.pk}/progress/?was=running")
        assert b"every 1s" not in done.content
        assert b'id="job-tag" hx-swap-oob="true"' in done.content
        assert b"New job like this" in done.content
        assert done["HX-Trigger"] == "job-ended"
        page = browser.get(f"/generate/{job.pk}/quality/").content.decode()
        assert 'hx-trigger="load, job-ended from:body' in page  # its figures are measured anew


class TestRows:
    @pytest.mark.parametrize(
        ("query", "rows"),
        [
            ("", 7),  # it runs: those that are finished
            ("?status=all", 10),
            ("?status=accepted", 5),
            ("?status=rejected", 1),
            ("?status=magic", 7),
            ("?page=99", 7),
            ("?page=x", 7),
        ],
    )
    def test_filters_and_pages(self, browser: Client, job: Job, query: str, rows: int) -> None:
        answer = browser.get(f"/generate/{job.pk}/rows/{query}")
        assert len(answer.context["table"]) == rows

    def test_a_rejected_row_shows_its_reason(self, browser: Client, job: Job) -> None:
        page = browser.get(f"/generate/{job.pk}/rows/?status=rejected").content.decode()
        assert "Cut off: too long." in page

    def test_rows_show_sampled_columns_next_to_the_fields(self, browser: Client, job: Job) -> None:
        answer = browser.get(f"/generate/{job.pk}/rows/?status=all")
        assert answer.context["fields"] == ["text", "label", "sentiment", "product"]
        assert answer.context["table"][0].cells[1] in {"positive", "negative"}


class TestRow:
    def test_shows_the_exact_prompt_and_the_raw_text(self, browser: Client, job: Job) -> None:
        page = browser.get(f"/generate/{job.pk}/rows/5/").content.decode()
        assert "Write it." in page
        assert "Answer with one JSON object with these fields:" in page
        assert "{&quot;text&quot;: &quot;Te" in page
        assert "Cut off: too long." in page

    def test_a_row_that_was_not_asked(self, browser: Client, job: Job) -> None:
        assert "Not generated yet" in browser.get(f"/generate/{job.pk}/rows/9/").content.decode()

    def test_no_such_row(self, browser: Client, job: Job) -> None:
        assert browser.get(f"/generate/{job.pk}/rows/10/").status_code == 404


class TestAct:
    @pytest.mark.parametrize(
        ("action", "status"),
        [("pause", "paused"), ("cancel", "cancelled"), ("retry", "running")],
    )
    def test_action_changes_the_status(
        self, browser: Client, job: Job, action: str, status: str
    ) -> None:
        assert browser.post(f"/generate/{job.pk}/{action}/").status_code == 302
        job.batch.refresh_from_db()
        assert job.batch.status == status

    def test_in_the_wrong_state(self, browser: Client, job: Job) -> None:
        page = browser.post(f"/generate/{job.pk}/resume/", follow=True).content.decode()
        assert "The job is running" in page

    def test_no_such_action(self, browser: Client, job: Job) -> None:
        assert browser.post(f"/generate/{job.pk}/explode/").status_code == 404

    def test_wrong_verb(self, browser: Client, job: Job) -> None:
        assert browser.get(f"/generate/{job.pk}/cancel/").status_code == 405


@pytest.mark.django_db(transaction=True)
class TestExport:
    async def test_jsonl_is_exact(self, async_browser: AsyncClient, job: Job) -> None:
        answer = await async_browser.get(f"/generate/{job.pk}/export/?format=jsonl")
        rows = [json.loads(line) for line in (await body_of(answer)).splitlines()]
        assert [row["text"] for row in rows] == [f"Text {index}." for index in range(5)]
        assert list(rows[0]) == ["text", "label", "sentiment", "product"]
        assert answer["content-disposition"] == 'attachment; filename="Reviews.jsonl"'

    async def test_csv_runs_no_formula(self, async_browser: AsyncClient, job: Job) -> None:
        cells = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1", "a\n=1", 'say "hi", then']
        for index, cell in enumerate(cells[:5]):
            await Item.objects.filter(batch_id=job.batch_id, index=index).aupdate(
                output={"text": cell, "label": cells[index + 4]}
            )
        answer = await async_browser.get(f"/generate/{job.pk}/export/?format=csv")
        text = (await body_of(answer)).removeprefix("\ufeff")
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert header == ["text", "label", "sentiment", "product"]
        for index, row in enumerate(rows):
            for cell, original in zip(row, (cells[index], cells[index + 4]), strict=False):
                assert cell.lstrip("'") == original
                assert cell[0] not in "=+-@\t\r＝" or cell == "-1"  # which is a number

    async def test_chat(self, async_browser: AsyncClient, job: Job) -> None:
        answer = await async_browser.get(f"/generate/{job.pk}/export/?format=chat")
        first = json.loads((await body_of(answer)).splitlines()[0])
        assert [message["role"] for message in first["messages"]] == ["system", "user", "assistant"]
        assert first["messages"][2]["content"] == '{"text": "Text 0.", "label": "positive"}'

    async def test_no_such_format(self, async_browser: AsyncClient, job: Job) -> None:
        answer = await async_browser.get(f"/generate/{job.pk}/export/?format=xlsx")
        assert answer.status_code == 404

    async def test_not_anothers(self, job: Job, bob: User) -> None:
        client = AsyncClient()
        await client.aforce_login(bob)
        assert (await client.get(f"/generate/{job.pk}/export/")).status_code == 404


class TestDataset:
    def test_dataset_is_created_from_accepted_rows(self, browser: Client, job: Job) -> None:
        answer = browser.post(
            f"/generate/{job.pk}/dataset/",
            {"name": "Made", "text_field": "text", "label_field": "label"},
        )
        assert answer.status_code == 302
        from apps.datasets.models import Dataset

        dataset = Dataset.objects.get()
        assert answer["location"] == reverse("datasets:detail", args=[dataset.pk])
        assert (dataset.name, dataset.rows, dataset.owner) == ("Made", 5, job.owner)
        assert dataset.label_counts == {"positive": 3, "negative": 2}

    def test_a_column_can_be_the_label(self, browser: Client, job: Job) -> None:
        browser.post(
            f"/generate/{job.pk}/dataset/", {"text_field": "text", "label_field": "product"}
        )
        from apps.datasets.models import Dataset

        assert set(Dataset.objects.get().label_counts) <= {"kettle", "lamp"}

    def test_bad_fields(self, browser: Client, job: Job) -> None:
        answer = browser.post(
            f"/generate/{job.pk}/dataset/",
            {"text_field": "nothing", "label_field": "label"},
            follow=True,
        )
        assert "No field “nothing”" in answer.content.decode()

    def test_nothing_accepted(self, browser: Client, alice: User, server: Server) -> None:
        job = new_job(alice, server)
        answer = browser.post(
            f"/generate/{job.pk}/dataset/",
            {"text_field": "text", "label_field": "label"},
            follow=True,
        )
        assert "no accepted rows yet" in answer.content.decode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "review/"),
        ("get", "cards/"),
        ("get", "cards/0/"),
        ("post", "cards/0/judge/"),
        ("get", "diversity/"),
        ("get", "card/"),
        ("post", "review/0/"),
        ("post", "add-rows/"),
        ("post", "duplicate/"),
        ("post", "delete/"),
        ("post", "limits/"),
        ("post", "compare/"),
        ("get", ""),
        ("get", "progress/"),
        ("get", "rows/"),
        ("get", "rows/0/"),
        ("get", "export/"),
        ("post", "dataset/"),
        ("post", "pause/"),
        ("post", "resume/"),
        ("post", "cancel/"),
        ("post", "retry/"),
    ],
)
def test_job_page_hides_jobs_of_others(
    bobs_browser: Client, job: Job, method: str, path: str
) -> None:
    before = Batch.objects.get(pk=job.batch_id).status
    assert getattr(bobs_browser, method)(f"/generate/{job.pk}/{path}").status_code == 404
    assert Batch.objects.get(pk=job.batch_id).status == before
