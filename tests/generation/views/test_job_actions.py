"""Actions on a job by the buttons of its page."""

import pytest
from django.test import Client

from apps.batch.models import Batch, BatchStatus, Item, ItemStatus
from apps.generation.models import Job, StoredRows
from apps.generation.recipe.recipe import MAX_ROWS
from tests.generation.conftest import message_of

ACTIONS = [
    ("pause", {}),
    ("resume", {}),
    ("cancel", {}),
    ("retry", {}),
    ("add-rows", {"rows": "5"}),
    ("duplicate", {}),
    ("delete", {}),
    ("limits", {"weight": "9"}),
]


@pytest.mark.parametrize(("action", "form"), ACTIONS)
def test_a_link_changes_nothing(
    browser: Client, job: Job, action: str, form: dict[str, str]
) -> None:
    before = Batch.objects.values().get()
    assert browser.get(f"/generate/{job.pk}/{action}/", form).status_code == 405
    assert Batch.objects.values().get() == before


@pytest.mark.parametrize(("action", "form"), ACTIONS)
def test_someone_elses_job_stays_as_it_is(
    bobs_browser: Client, job: Job, action: str, form: dict[str, str]
) -> None:
    before = Batch.objects.values().get()
    assert bobs_browser.post(f"/generate/{job.pk}/{action}/", form).status_code == 404
    assert Batch.objects.values().get() == before
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("before", "action", "after", "message"),
    [
        ("running", "pause", "paused", "Paused. Running rows will finish."),
        ("paused", "resume", "running", "Job resumed."),
        ("running", "cancel", "cancelled", "Finished rows are kept."),
        ("done", "retry", "running", "Retrying failed rows."),
    ],
)
def test_an_action_is_confirmed(
    browser: Client, job: Job, before: str, action: str, after: str, message: str
) -> None:
    Batch.objects.update(status=before)
    assert message in message_of(browser, f"/generate/{job.pk}/{action}/", {})
    found = Batch.objects.get().status
    assert found == after or {found, after} == {"queued", "running"}


@pytest.mark.parametrize(
    ("status", "action"),
    [("done", "pause"), ("done", "resume"), ("cancelled", "resume"), ("cancelled", "retry")],
)
def test_an_action_in_the_wrong_state_gives_the_reason(
    browser: Client, job: Job, status: str, action: str
) -> None:
    Batch.objects.update(status=status)
    answer = browser.post(f"/generate/{job.pk}/{action}/", follow=True)
    [message] = answer.context["messages"]
    assert message.level_tag == "error"
    assert Batch.objects.get().status == status


def test_retry_takes_failed_rows_alone(browser: Client, job: Job) -> None:
    browser.post(f"/generate/{job.pk}/retry/")
    items = dict(Item.objects.values_list("index", "status"))
    assert items[6] == ItemStatus.PENDING
    assert items[5] == ItemStatus.REJECTED


@pytest.mark.parametrize("rows", ["", "0", "-1", "1.5", str(MAX_ROWS + 1), "9" * 40, "x"])
def test_a_wrong_number_of_rows_adds_none(browser: Client, job: Job, rows: str) -> None:
    page = message_of(browser, f"/generate/{job.pk}/add-rows/", {"rows": rows})
    assert f"Enter a number of rows from 1 to {MAX_ROWS:,}." in page
    assert Batch.objects.get().total == 10


def test_rows_are_added_to_a_finished_job(browser: Client, job: Job) -> None:
    Batch.objects.update(status=BatchStatus.DONE)
    page = message_of(browser, f"/generate/{job.pk}/add-rows/", {"rows": "3"})
    assert "3 rows added to the job." in page
    batch = Batch.objects.get()
    assert (batch.total, batch.status in {"queued", "running"}) == (13, True)


@pytest.mark.parametrize(
    ("form", "largest"),
    [
        ({"width": "0"}, "1,000"),
        ({"width": "1001"}, "1,000"),
        ({"weight": "101"}, "100"),
        ({"weight": "-1"}, "100"),
        ({"daily_tokens": "٣"}, "1,000,000,000,000"),
        ({"daily_tokens": "9" * 30}, "1,000,000,000,000"),
    ],
)
def test_a_wrong_limit_is_not_saved(
    browser: Client, job: Job, form: dict[str, str], largest: str
) -> None:
    before = Batch.objects.values().get()
    page = message_of(browser, f"/generate/{job.pk}/limits/", form)
    assert f"Enter an integer from 1 to {largest}." in page
    assert Batch.objects.values().get() == before


def test_empty_limits_are_removed(browser: Client, job: Job) -> None:
    Batch.objects.update(width=2, weight=5, daily_tokens=100)
    page = message_of(browser, f"/generate/{job.pk}/limits/", {"width": " "})
    assert "Limits saved." in page
    batch = Batch.objects.get()
    assert (batch.width, batch.weight, batch.daily_tokens) == (None, 1, None)


def test_delete_takes_the_stored_rows_along_and_no_others(
    browser: Client, bobs_browser: Client, job: Job
) -> None:
    mine = StoredRows.objects.create(owner=job.owner, origin="seeds", count=0, rows=[])
    other = StoredRows.objects.create(owner=job.owner, origin="of another job", count=0, rows=[])
    job.batch.spec["stored"] = {"seed": mine.pk}
    job.batch.save(update_fields=["spec"])
    page = message_of(browser, f"/generate/{job.pk}/delete/", {})
    assert "“Reviews” and its rows deleted." in page
    assert list(StoredRows.objects.all()) == [other]
    assert browser.get(f"/generate/{job.pk}/").status_code == 404
