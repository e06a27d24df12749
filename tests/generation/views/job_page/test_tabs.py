"""The page of a job: which tab opens, and what each of them shows."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from apps.batch.models import Batch, ItemStatus
from apps.generation.models import Job, RecipeVersion, SavedRecipe
from apps.generation.recipe.parse import to_json
from tests.generation.conftest import JUDGED, finish, set_fingerprints
from tests.markup import visible_text


def shown(client: Client, job: Job, tab: str = "") -> str:
    return " ".join(client.get(f"/generate/{job.pk}/{tab}").content.decode().split())


@pytest.mark.parametrize(
    ("status", "tab"),
    [("running", "rows"), ("queued", "rows"), ("paused", "rows"), ("done", "use")],
)
def test_a_job_opens_where_it_is_most_useful(
    browser: Client, job: Job, status: str, tab: str
) -> None:
    Batch.objects.update(status=status)
    answer: Any = browser.get(f"/generate/{job.pk}/")
    assert answer.context["tab"] == tab


@pytest.mark.parametrize("status", ["running", "done"])
@pytest.mark.parametrize("query", ["", "?status=newest", "?status=all"])
def test_all_rows_are_marked_as_chosen_in_either_order(
    browser: Client, job: Job, status: str, query: str
) -> None:
    """A table that was opened while the job ran keeps its order when the job ends."""
    Batch.objects.update(status=status)
    answer: Any = browser.get(f"/generate/{job.pk}/rows/{query}")
    assert [label for _, label, _, chosen in answer.context["segments"] if chosen] == ["All"]


def test_a_job_without_a_row_is_failed_and_shows_its_rows(browser: Client, job: Job) -> None:
    Batch.objects.update(status="done")
    job.batch.items.update(status="rejected", code="length")
    page = shown(browser, job)
    assert 'class="badge badge-bad"' in page
    assert "badge-good" not in page
    assert "All 10 rejected rows were cut off at max tokens." in page
    assert "Raise max tokens" in page


def test_a_queued_job_says_why_and_since_when(browser: Client, job: Job) -> None:
    Batch.objects.update(status="queued", reason="All slots are busy.")
    page = shown(browser, job)
    assert "Queued since today" in visible_text(page)
    assert "All slots are busy." in page


def test_the_time_left_is_a_range_from_twenty_rows_on(browser: Client, job: Job) -> None:
    assert "Estimating…" in shown(browser, job)
    Batch.objects.update(total=60, active_seconds=60)
    items = list(job.batch.items.all())
    for index in range(10, 60):
        items[0].pk, items[0].index = None, index
        items[0].save(force_insert=True)
    job.batch.items.filter(index__lt=40).update(status=ItemStatus.ACCEPTED)
    job.batch.items.filter(index__gte=40).update(status=ItemStatus.PENDING, finished=None)
    job.batch.items.filter(index__lt=40).update(finished=timezone.now() - timedelta(hours=1))
    page = shown(browser, job)
    assert "About 30 s left" in page
    assert "20 s to 40 s at this rate" in page


def test_rows_of_a_judged_recipe_have_a_score(browser: Client, judged: Job) -> None:
    answer: Any = browser.get(f"/generate/{judged.pk}/rows/")
    first = answer.context["table"][0]
    assert (first.text, first.cells) == ("Ein Überschuss.", ["billing"])
    assert (first.score, first.share, first.too_low) == ("3", 0.6, False)
    assert answer.context["table"][1].too_low
    assert answer.context["table"][3].share is None
    page = answer.content.decode()
    assert 'class="meter meter-low"' in page
    assert "Lowest quality first" in page


def test_rows_are_searched_and_filtered_by_the_address(browser: Client, judged: Job) -> None:
    answer: Any = browser.get(f"/generate/{judged.pk}/rows/?q=mine")
    assert [row.item.index for row in answer.context["table"]] == [2]
    answer = browser.get(f"/generate/{judged.pk}/rows/?is.topic=crash&sort=high:quality")
    assert [row.item.index for row in answer.context["table"]] == [1, 3]
    assert "No matching rows." in shown(browser, judged, "rows/?q=nowhere")


def test_htmx_gets_the_table_alone(browser: Client, job: Job) -> None:
    headers = {"HX-Request": "true"}
    page = browser.get(f"/generate/{job.pk}/rows/", headers=headers).content.decode()
    assert "<html" not in page
    assert 'id="rows"' in page


def test_new_rows_are_counted_and_shown_when_asked_for(browser: Client, job: Job) -> None:
    since = timezone.now().isoformat()
    address = f"/generate/{job.pk}/rows/new/"
    assert b"new row" not in browser.get(address, {"since": since}).content
    for index in (7, 8):
        finish(job, index, ItemStatus.ACCEPTED, output={"text": "New."})
    page = browser.get(address, {"since": since}).content.decode()
    assert "2 new rows" in page
    assert "every 2s" in page
    for wrong in ("", "x", "2026-01-01"):
        assert b"new row" not in browser.get(address, {"since": wrong}).content
    Batch.objects.update(status="done")
    assert b"every 2s" not in browser.get(address, {"since": since}).content


def test_the_first_rows_come_by_themselves(browser: Client, job: Job) -> None:
    job.batch.items.update(status=ItemStatus.PENDING, finished=None)
    since = quote(timezone.now().isoformat())
    assert "&amp;empty=1" in shown(browser, job, "rows/")
    address = f"/generate/{job.pk}/rows/new/?since={since}&empty=1"
    assert b'hx-trigger="load"' not in browser.get(address).content
    finish(job, 7, ItemStatus.ACCEPTED, output={"text": "New."})
    assert b'hx-trigger="load"' in browser.get(address).content
    assert "&amp;empty=1" not in shown(browser, job, "rows/")


def test_quality_shows_scores_and_shares(browser: Client, judged: Job) -> None:
    set_fingerprints(judged)
    page = shown(browser, judged, "quality/")
    assert "Scores: quality" in page
    assert "3 judged rows, logarithmic bars. Rows below 2 are rejected." in page
    assert 'title="billing"' in page


def test_use_counts_what_is_unreviewed(browser: Client, job: Job) -> None:
    Batch.objects.update(status="done")
    job.batch.items.filter(index=0).update(reviewed=True)
    page = shown(browser, job, "use/")
    assert "4 unreviewed" in page
    assert "1 reviewed" in page


def test_use_without_an_accepted_row(browser: Client, job: Job) -> None:
    job.batch.items.update(status="rejected")
    assert "No accepted rows" in shown(browser, job, "use/")


def test_the_recipe_shows_what_changed_since(browser: Client, alice: User, job: Job) -> None:
    saved = SavedRecipe.objects.create(owner=alice, name="Reviews", kept=True)
    body = to_json(job.spec.recipe)
    first = RecipeVersion.objects.create(saved=saved, number=1, body=body)
    Job.objects.update(version=first)
    assert "Changes from" not in shown(browser, job, "recipe/")
    RecipeVersion.objects.create(saved=saved, number=2, body={**body, "system": "Be short."})
    page = shown(browser, job, "recipe/")
    assert "Changes from v1 to v2" in page
    assert "system: Be short." in page
    assert JUDGED is not body


def test_the_recipe_names_its_parameters_in_words(browser: Client, job: Job) -> None:
    page = shown(browser, job, "recipe/")
    assert "· max tokens " in page
    assert "· max_tokens" not in page


def test_the_line_of_a_slowed_job_says_rate_limited(browser: Client, job: Job) -> None:
    assert "rate-limited" not in shown(browser, job, "rows/")
    Batch.objects.update(status="running", reason="Slowed down: 20 requests per minute.")
    assert "<span>rate-limited</span>" in shown(browser, job, "rows/")


def test_the_list_is_searched(browser: Client, job: Job) -> None:
    headers = {"HX-Request": "true"}
    found = browser.get("/generate/?find=REVIEW", headers=headers).content.decode()
    assert "Reviews" in found
    assert "No matching jobs." in browser.get("/generate/?find=x", headers=headers).content.decode()


def test_the_open_job_stays_marked_while_the_list_is_polled(browser: Client, job: Job) -> None:
    headers = {"HX-Request": "true"}
    found = browser.get(f"/generate/?open={job.pk}", headers=headers).content.decode()
    assert 'aria-current="page"' in found
    assert (
        'aria-current="page"'
        not in browser.get("/generate/?open=x", headers=headers).content.decode()
    )
