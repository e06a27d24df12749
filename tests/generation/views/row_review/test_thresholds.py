"""The threshold for near duplicates: what it would do, what it does, and that nothing is lost."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client

from apps.batch import services
from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.batch.services import accept_row
from apps.generation.models import Job, StoredRows
from apps.generation.review import apply_threshold, compare_by_meaning, near_duplicates
from apps.runtime.async_db import in_db
from apps.servers.models import Server
from tests.generation.conftest import finish, new_job

LONG = "The kettle boils water in a minute and switches itself off when it is done, which I like"
OTHER = "A lamp for the desk that is bright enough to read by and does not get warm in the evening"
TEXTS = [LONG, f"{LONG}!", f"{LONG} very much.", OTHER, f"{OTHER} at all."]
NEAR = "near_duplicate"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]


@pytest.fixture
def alike(alice: User, server: Server) -> Job:
    """Five accepted rows that say two things, of a job that is done."""
    job = new_job(alice, server, rows=5)
    for index, text in enumerate(TEXTS):
        output = {"text": text, "label": "positive"}
        finish(job, index, ItemStatus.ACCEPTED, output=output, fingerprint=f"print {index}")
    Batch.objects.filter(pk=job.batch_id).update(status=BatchStatus.DONE)
    return job


def states(job: Job) -> list[str]:
    items = Item.objects.filter(batch_id=job.batch_id).order_by("index")
    return [item.code or item.status for item in items]


def shown(client: Client, job: Job, by: str = "text") -> dict[str, Any]:
    answer = client.get(f"/generate/{job.pk}/near/?by={by}")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def apply(client: Client, job: Job, threshold: object, by: str = "text") -> str:
    answer = client.post(
        f"/generate/{job.pk}/near/apply/", {"by": by, "threshold": str(threshold)}, follow=True
    )
    return answer.content.decode()


def at(found: dict[str, Any], name: str, step: int) -> int:
    return int(found[name][found["steps"].index(step)])


class TestByText:
    def test_what_each_threshold_would_do(self, browser: Client, alike: Job) -> None:
        found = shown(browser, alike)
        assert (found["rows"], found["accepted"], found["seen"]) == (5, 5, 0)
        assert [at(found, "out", step) for step in (70, 100)] == [3, 0]
        assert (sum(found["histogram"]), found["below"]) == (3, 2)
        # Never worked out again.
        assert not Item.objects.filter(batch_id=alike.batch_id, minhash=None).exists()

    def test_rows_go_and_come_back(self, browser: Client, alike: Job) -> None:
        page = apply(browser, alike, 70)
        assert "3 rows rejected as near-duplicates, 0 restored." in page
        assert states(alike) == ["accepted", NEAR, NEAR, "accepted", NEAR]
        item = Item.objects.get(batch_id=alike.batch_id, index=4)
        assert item.reason.startswith("About ")
        assert item.reason.endswith("% similar to row 4.")
        assert item.output == {"text": TEXTS[4], "label": "positive"}
        assert 'data-text="70"' in page
        assert at(shown(browser, alike), "back", 100) == 3
        page = apply(browser, alike, 101)
        assert "0 rows rejected as near-duplicates, 3 restored." in page
        assert states(alike) == ["accepted"] * 5
        assert not Item.objects.filter(batch_id=alike.batch_id, fingerprint=None).exists()
        alike.batch.refresh_from_db()
        assert alike.batch.spec["filters"]["near"] is None

    def test_nobody_waits_for_all_rows_of_a_job(
        self, browser: Client, alike: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A few rows a transaction; what becomes of them is the same."""
        sizes: list[int] = []

        def counted(function: Any, rows_at: int) -> Any:
            def call(*args: Any) -> int:
                assert not connection.in_atomic_block
                sizes.append(len(args[rows_at]))
                return int(function(*args))

            return call

        reject, restore = services.reject_near_duplicates, services.restore_near_duplicates
        monkeypatch.setattr(apply_threshold, "CHUNK", 2)
        monkeypatch.setattr(services, "reject_near_duplicates", counted(reject, 0))
        monkeypatch.setattr(services, "restore_near_duplicates", counted(restore, 1))
        apply(browser, alike, 70)
        assert states(alike) == ["accepted", NEAR, NEAR, "accepted", NEAR]
        apply(browser, alike, 101)
        assert states(alike) == ["accepted"] * 5
        assert sizes == [2, 1, 2, 1]

    def test_what_a_person_looked_at_stays(self, browser: Client, alike: Job) -> None:
        items = Item.objects.filter(batch_id=alike.batch_id)
        items.filter(index=2).update(reviewed=True)
        items.filter(index=3).update(status=ItemStatus.REJECTED, code="by_hand", reviewed=True)
        apply(browser, alike, 70)
        # The first two resemble the one that stays; the fifth no longer resembles any.
        assert states(alike) == [NEAR, NEAR, "accepted", "by_hand", "accepted"]

    def test_what_repeats_a_row_to_the_letter_does_not_come_back(
        self, browser: Client, alike: Job
    ) -> None:
        twin = {"text": f"  {LONG.upper()}", "label": "positive"}
        items = Item.objects.filter(batch_id=alike.batch_id)
        items.filter(index=4).update(status=ItemStatus.REJECTED, code=NEAR, output=twin)
        apply(browser, alike, 70)
        apply(browser, alike, 101)  # gives the rows their own fingerprints
        items.filter(index=4).update(status=ItemStatus.REJECTED, code=NEAR, output=twin)
        items.filter(index=0).update(status=ItemStatus.REJECTED, code=NEAR)
        apply(browser, alike, 101)
        assert states(alike) == ["accepted"] * 4 + ["duplicate"]

    def test_seed_rows_come_first(self, browser: Client, alike: Job, alice: User) -> None:
        rows = [{"text": " "}, {"text": f"{OTHER}?"}]
        stored = StoredRows.objects.create(owner=alice, origin="x", count=2, rows=rows)
        alike.batch.spec["stored"] = {"seed": stored.pk}
        alike.batch.save(update_fields=["spec"])
        apply(browser, alike, 70)
        assert states(alike)[3:] == ["seed_duplicate"] * 2
        item = Item.objects.get(batch_id=alike.batch_id, index=3)
        assert item.reason.endswith("similar to seed row 2.")

    def test_a_row_that_is_accepted_meanwhile_is_compared_the_next_time(
        self, browser: Client, alike: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        minhash = near_duplicates.fill_minhashes

        def and_one_more(*args: Any) -> int:
            left = minhash(*args)
            Item.objects.filter(batch_id=alike.batch_id, index=4).update(minhash=None)
            return left

        monkeypatch.setattr(near_duplicates, "fill_minhashes", and_one_more)
        assert shown(browser, alike)["rows"] == 4
        monkeypatch.undo()
        assert shown(browser, alike)["rows"] == 5

    def test_more_rows_than_memory_is_meant_for(
        self, browser: Client, api: Client, alike: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(near_duplicates, "TEXT_ROWS", 4)
        answer = api.get(f"/api/v1/jobs/{alike.pk}/near-duplicates")
        assert answer.status_code == 422
        assert "5 rows. The limit for comparing is 4." in answer.json()["detail"]
        page = browser.get(f"/generate/{alike.pk}/near/?by=text")
        assert "The limit for comparing is 4" in page.content.decode()

    def test_many_rows_are_prepared_in_parts(
        self, browser: Client, alike: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(near_duplicates, "SECONDS", -1)
        assert shown(browser, alike) == {"done": 0, "total": 5}
        assert "still being compared" in apply(browser, alike, 70)
        assert states(alike) == ["accepted"] * 5

    def test_bad_input_and_other_people(
        self, browser: Client, bobs_browser: Client, alike: Job
    ) -> None:
        for threshold in ("49", "102", "", "x", "٧٠"):
            assert "a whole number from 50 to 100" in apply(browser, alike, threshold)
        assert "a whole number" in apply(browser, alike, 70, by="colour")
        assert browser.get(f"/generate/{alike.pk}/near/?by=colour").status_code == 400
        assert browser.post(f"/generate/{alike.pk}/near/").status_code == 405
        assert browser.get(f"/generate/{alike.pk}/near/apply/").status_code == 405
        assert bobs_browser.get(f"/generate/{alike.pk}/near/?by=text").status_code == 404
        data = {"by": "text", "threshold": "70"}
        answer = bobs_browser.post(f"/generate/{alike.pk}/near/apply/", data)
        assert answer.status_code == 404
        assert states(alike) == ["accepted"] * 5

    def test_over_http(self, api: Client, bobs_api: Client, alike: Job) -> None:
        path = f"/api/v1/jobs/{alike.pk}/near-duplicates"
        found = api.get(path).json()
        assert at(found, "out", 70) == 3
        answer = api.post(path, {"threshold": 0.7}, content_type="application/json")
        assert answer.json() == {"rejected": 3, "restored": 0, "goes_on": False}
        answer = api.post(path, {"threshold": None}, content_type="application/json")
        assert answer.json() == {"rejected": 0, "restored": 3, "goes_on": False}
        for wrong in ({"threshold": 0.3}, {}, {"by": "colour", "threshold": 0.9}):
            answer = api.post(path, wrong, content_type="application/json")
            assert answer.status_code == 422
        assert bobs_api.get(path).status_code == 404


def test_threshold_makes_a_refilling_job_continue(browser: Client, alike: Job) -> None:
    Batch.objects.filter(pk=alike.batch_id).update(goal=5)
    assert "The job continues until it has enough accepted rows." in apply(browser, alike, 70)
    alike.batch.refresh_from_db()
    assert alike.batch.status == BatchStatus.QUEUED
    # Rows that made room for others and are wanted again take that room back.
    items = Item.objects.filter(batch_id=alike.batch_id)
    items.filter(index=1).update(replaced=True)
    Item.objects.create(batch_id=alike.batch_id, index=5, input={"for": 1})
    accept_row(items.get(index=1))
    assert not items.filter(index=5).exists()
    assert not items.get(index=1).replaced


class TestByMeaning:
    async def test_threshold_by_meaning_rejects_near_duplicates(
        self, async_browser: AsyncClient, alike: Job, embedding_server: Server
    ) -> None:
        answer = await async_browser.get(f"/generate/{alike.pk}/near/?by=meaning")
        found = answer.json()
        assert found["rows"] == 5
        step = next(step for step in range(100, 49, -1) if at(found, "out", step))
        data = {"by": "meaning", "threshold": str(step)}
        await async_browser.post(f"/generate/{alike.pk}/near/apply/", data)
        codes = await in_db(states, alike)
        assert codes.count("near_meaning") == at(found, "out", step)
        job = await Job.objects.select_related("batch").aget()
        assert job.spec.filters.meaning == step / 100

    async def test_what_cannot_be_compared(self, async_browser: AsyncClient, alike: Job) -> None:
        path = f"/generate/{alike.pk}/near/?by=meaning"
        assert "No server set for embeddings" in (await async_browser.get(path)).json()["error"]

    async def test_too_many_rows(
        self,
        async_browser: AsyncClient,
        alike: Job,
        embedding_server: Server,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(compare_by_meaning, "MEANING_ROWS", 4)
        answer = await async_browser.get(f"/generate/{alike.pk}/near/?by=meaning")
        assert answer.json()["error"].startswith("Comparing by meaning is limited to 4 rows")
