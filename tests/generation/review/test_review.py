"""Looking through rows, and what else people do with a job on its pages."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset
from apps.files import ExampleRow
from apps.generation.models import Job
from apps.generation.rows import answer_check
from apps.servers.models import Server
from apps.similarity.minhash import jaccard_similarity, minhash_signature
from tests.generation.conftest import finish, new_job


def item(job: Job, index: int) -> Item:
    return Item.objects.get(batch_id=job.batch_id, index=index)


class TestReview:
    def test_review_shows_a_row_and_saves_the_verdict(self, browser: Client, job: Job) -> None:
        page = browser.get(f"/generate/{job.pk}/review/").content.decode()
        assert "Text 0." in page
        assert 'name="field-text"' in page
        assert 'name="field-product"' not in page  # drawn, not written
        assert "1 of 5" in " ".join(page.split())

    def test_accepting_shows_the_next_one(self, browser: Client, job: Job) -> None:
        answer = browser.post(
            f"/generate/{job.pk}/review/0/",
            {"action": "accept", "status": "accepted"},
            headers={"HX-Request": "true"},
        )
        assert answer.context["item"].index == 1
        assert "<html" not in answer.content.decode()
        assert item(job, 0).reviewed
        unseen = browser.get(f"/generate/{job.pk}/review/?status=accepted&unseen=1")
        assert unseen.context["item"].index == 1

    def test_rejecting(self, browser: Client, job: Job) -> None:
        browser.post(f"/generate/{job.pk}/review/1/", {"action": "reject"})
        found = item(job, 1)
        assert (found.status, found.code, found.reason) == (
            *("rejected", "by_hand", "Rejected by you."),
        )
        browser.post(f"/generate/{job.pk}/review/1/", {"action": "accept", "status": "rejected"})
        assert item(job, 1).status == "accepted"

    def test_an_edit_keeps_the_original(self, browser: Client, job: Job) -> None:
        answer = browser.post(
            f"/generate/{job.pk}/review/0/",
            {"action": "edit", "field-text": "Better.", "field-label": "negative"},
            headers={"HX-Request": "true"},
        )
        assert answer.context["item"].index == 0
        page = browser.get(f"/generate/{job.pk}/review/?at=0").content.decode()
        assert "Original: Text 0." in page
        found = item(job, 0)
        assert found.edited == {"text": "Better.", "label": "negative"}
        assert found.output == {"text": "Text 0.", "label": "positive"}
        page = browser.get(f"/generate/{job.pk}/rows/0/").content.decode()
        assert "Edited row" in page
        browser.post(
            f"/generate/{job.pk}/review/0/",
            {"action": "edit", "field-text": "Text 0.", "field-label": "positive"},
        )
        assert item(job, 0).edited is None

    def test_a_changed_row_is_known_by_its_new_text(self, browser: Client, job: Job) -> None:
        for index, text in ((0, "Better."), (1, " better. ")):
            form = {"action": "edit", "field-text": text, "field-label": "negative"}
            browser.post(f"/generate/{job.pk}/review/{index}/", form)
        prints = [item(job, index).fingerprint for index in (0, 1)]
        assert prints == [answer_check.fingerprint(["Better."]), None]  # no two share one

    def test_an_edit_that_does_not_fit(self, browser: Client, job: Job) -> None:
        answer = browser.post(
            f"/generate/{job.pk}/review/0/",
            {"action": "edit", "field-label": "so-so"},
            headers={"HX-Request": "true"},
        )
        assert "does not match the schema" in answer.content.decode()
        assert item(job, 0).edited is None

    def judge(self, browser: Client, job: Job, index: int, action: str, **more: str) -> Any:
        address = f"/generate/{job.pk}/review/{index}/"
        form = {"action": action, "status": "accepted", **more}
        return browser.post(address, form, headers={"HX-Request": "true"})

    def test_undo(self, browser: Client, job: Job) -> None:
        finish(job, 1, ItemStatus.ACCEPTED, fingerprint="x")
        for action, became in (("reject", "rejected"), ("accept", "accepted")):
            answer = self.judge(browser, job, 1, action)
            assert (item(job, 1).status, item(job, 1).reviewed) == (became, True)
            assert f"Row 2 is {became}." in answer.content.decode()
            undone = self.judge(browser, job, 1, "undo", before=answer.context["undo"])
            found = item(job, 1)
            assert (found.status, found.reviewed, found.code) == ("accepted", False, "")
            assert found.fingerprint
            assert undone.context["item"].index == 1
        Item.objects.filter(batch_id=job.batch_id, index=2).update(
            status="rejected", code="near_duplicate", reason="About 95 % similar to row 1."
        )
        answer = self.judge(browser, job, 2, "accept", status="rejected")
        assert item(job, 2).status == "accepted"
        self.judge(browser, job, 2, "undo", before=answer.context["undo"])
        assert (item(job, 2).status, item(job, 2).code) == ("rejected", "near_duplicate")

    def test_nothing_to_undo(self, browser: Client, job: Job) -> None:
        before = self.judge(browser, job, 1, "reject").context["undo"]
        for index, token in ((1, "x"), (1, ""), (2, before)):
            answer = self.judge(browser, job, index, "undo", before=token)
            assert answer.context["problem"] == "Nothing to undo."
        Item.objects.filter(batch_id=job.batch_id, index=1).update(status="running")
        answer = self.judge(browser, job, 1, "undo", before=before)
        assert "cannot be undone" in answer.context["problem"]

    def test_the_last_row_is_one_step_back_also_when_it_was_rejected(
        self, browser: Client, job: Job
    ) -> None:
        for index in range(5):
            answer = self.judge(browser, job, index, "reject")
            assert answer.context["before"].index == index
        page: Any = browser.get(f"/generate/{job.pk}/review/?status=accepted&at=4")
        assert page.context["item"].index == 4
        assert "Restore" in page.content.decode()

    def test_restore_and_unknown_actions_are_refused(self, browser: Client, job: Job) -> None:
        browser_answer = browser.post(
            f"/generate/{job.pk}/review/5/",
            {"action": "accept", "status": "rejected"},
            headers={"HX-Request": "true"},
        )
        assert "This row cannot be restored" in browser_answer.content.decode()
        assert browser.post(f"/generate/{job.pk}/review/0/", {"action": "x"}).status_code == 404
        assert browser.post(f"/generate/{job.pk}/review/99/", {}).status_code == 404
        assert browser.get(f"/generate/{job.pk}/review/0/").status_code == 405

    def test_nothing_left(self, browser: Client, alice: User, server: Server) -> None:
        job = new_job(alice, server)
        page = browser.get(f"/generate/{job.pk}/review/").content.decode()
        assert "No rows yet" in page

    @pytest.mark.parametrize("kept", [True, False])
    def test_what_is_most_like_it(self, browser: Client, job: Job, kept: bool) -> None:
        texts = ["A red kettle that sings.", "A blue kettle that sings.", "The moon.", "A kettle."]
        for index, text in enumerate(texts):
            signature = minhash_signature(text)
            assert signature is not None
            Item.objects.filter(batch_id=job.batch_id, index=index).update(
                output={"text": text, "label": "positive"},
                fingerprint=f"{9 - index}",
                minhash=signature.tobytes() if kept else None,
            )
        found: Any = browser.get(f"/generate/{job.pk}/review/").context["neighbours"]
        assert [neighbour.index for neighbour in found.rows] == [1, 3]
        assert found.among == 3
        assert found.rows[0].share == jaccard_similarity(texts[0], texts[1])

    def test_nothing_is_like_it(self, browser: Client, job: Job) -> None:
        page = browser.get(f"/generate/{job.pk}/review/").content.decode()
        assert "No similar accepted rows." in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_closed_connections")
class TestDiversity:
    async def test_diversity_page_shows_its_figures(
        self, async_browser: AsyncClient, job: Job, embedding_server: Server
    ) -> None:
        await Item.objects.filter(batch_id=job.batch_id, index__lt=5).aupdate(fingerprint="x")
        answer = await async_browser.get(f"/generate/{job.pk}/diversity/")
        assert answer.status_code == 200
        assert answer.context["lines"][0][1].vendi is None  # it runs: nothing is embedded
        answer = await async_browser.get(f"/generate/{job.pk}/diversity/?all=1")
        name, figures = answer.context["lines"][0]
        assert (name, figures.texts) == ("all rows", 5)
        assert 1 <= figures.vendi <= 5.01
        assert "Distinct-2" in answer.content.decode()
        await Batch.objects.aupdate(status=BatchStatus.DONE)
        answer = await async_browser.get(f"/generate/{job.pk}/diversity/")
        assert answer.status_code == 286  # the page asks no more
        assert answer.context["lines"][0][1].vendi == figures.vendi

    async def test_without_an_embedding_server(self, async_browser: AsyncClient, job: Job) -> None:
        await Item.objects.filter(batch_id=job.batch_id, index__lt=5).aupdate(fingerprint="x")
        answer = await async_browser.get(f"/generate/{job.pk}/diversity/")
        assert answer.context["lines"][0][1].vendi is None

    async def test_nothing_to_compare(self, async_browser: AsyncClient, job: Job) -> None:
        page = (await async_browser.get(f"/generate/{job.pk}/diversity/")).content.decode()
        assert "needs at least 2 accepted rows" in page


class TestWhatElse:
    def test_more_rows(self, browser: Client, job: Job) -> None:
        browser.post(f"/generate/{job.pk}/add-rows/", {"rows": "7"})
        assert Batch.objects.get().total == 17
        for rows in ("0", "x", "1000000"):
            page = browser.post(f"/generate/{job.pk}/add-rows/", {"rows": rows}, follow=True)
            assert "Enter a number of rows" in page.content.decode()
        Batch.objects.update(status=BatchStatus.CANCELLED)
        page = browser.post(f"/generate/{job.pk}/add-rows/", {"rows": "7"}, follow=True)
        assert "This job was cancelled" in page.content.decode()

    def test_once_more(self, browser: Client, job: Job) -> None:
        answer = browser.post(f"/generate/{job.pk}/duplicate/")
        copy = Job.objects.exclude(pk=job.pk).get()
        assert answer["location"] == f"/generate/{copy.pk}/"
        assert copy.recipe == job.recipe
        assert copy.spec.seed != job.spec.seed

    def test_once_more_without_its_server(self, browser: Client, job: Job, server: Server) -> None:
        server.delete()
        page = browser.post(f"/generate/{job.pk}/duplicate/", follow=True).content.decode()
        assert "The model server of this job was removed" in page

    def test_deleting(self, browser: Client, job: Job) -> None:
        page = browser.post(f"/generate/{job.pk}/delete/", follow=True).content.decode()
        assert "its rows deleted" in page
        assert not Item.objects.exists()
        assert not Job.objects.exists()

    def test_limits_form_saves_width_weight_and_daily_tokens(
        self, browser: Client, job: Job
    ) -> None:
        address = f"/generate/{job.pk}/limits/"
        browser.post(address, {"width": "2", "weight": "5", "daily_tokens": ""})
        batch = Batch.objects.get()
        assert (batch.width, batch.weight, batch.daily_tokens) == (2, 5, None)
        page = browser.post(address, {"width": "x"}, follow=True).content.decode()
        assert "Enter an integer from 1 to 1,000" in page

    def test_what_the_rows_are_worth(self, browser: Client, job: Job, alice: User) -> None:
        rows = [
            ExampleRow(f"Real {n}", "positive", split="test" if n < 4 else "train")
            for n in range(10)
        ]
        real = create_dataset(owner=alice, name="Real", rows=rows, origin="a test")
        form = {"real": real.pk, "text_field": "text", "label_field": "label"}
        answer = browser.post(f"/generate/{job.pk}/compare/", form)
        assert answer.status_code == 307  # the browser posts on
        address = urlsplit(answer["location"])
        assert address.path == "/classify/worth/"
        keys = parse_qs(address.query)
        made = [Dataset.objects.get(pk=keys[name][0]) for name in ("real", "synthetic", "both")]
        assert [(one.rows, one.test_rows) for one in made] == [(10, 4), (9, 4), (15, 4)]
        origins = set(made[2].examples.values_list("origin", flat=True))
        assert "synthetic, row 1" in origins
        form["label_field"] = "x"
        wrong = browser.post(f"/generate/{job.pk}/compare/", form, follow=True)
        assert "No field “x”" in wrong.content.decode()

    def test_worth_nothing_without_test_rows(
        self, browser: Client, job: Job, alice: User, bob: User
    ) -> None:
        made = [ExampleRow("Real", "positive")]
        real = create_dataset(owner=alice, name="Real", rows=made, origin="a test")
        form = {"real": real.pk, "text_field": "text", "label_field": "label"}
        page = browser.post(f"/generate/{job.pk}/compare/", form, follow=True).content.decode()
        assert "has no test rows" in page
        other = create_dataset(owner=bob, name="Bob's", rows=made, origin="a test")
        form["real"] = other.pk
        assert browser.post(f"/generate/{job.pk}/compare/", form).status_code == 404

    def test_the_data_card(self, browser: Client, job: Job) -> None:
        answer = browser.get(f"/generate/{job.pk}/card/")
        assert "attachment" in answer["content-disposition"]
        assert json.loads(answer.content)["counts"]["accepted"] == 5

    def test_which_rows_are_shown(self, browser: Client, job: Job) -> None:
        finish(job, 8, ItemStatus.REJECTED, code="near_duplicate", reason="About 95 % the same.")
        answer: Any = browser.get(f"/generate/{job.pk}/rows/")
        shown = [row.item.index for row in answer.context["table"]]
        assert shown == [8, 6, 5, 4, 3, 2, 1, 0]  # it runs: the newest first
        answer = browser.get(f"/generate/{job.pk}/rows/?status=all")
        assert [row.item.index for row in answer.context["table"]] == list(range(10))
        answer = browser.get(f"/generate/{job.pk}/rows/?status=rejected&code=near_duplicate")
        assert [row.item.index for row in answer.context["table"]] == [8]
        assert "Near-duplicate of another row (text)" in answer.content.decode()
