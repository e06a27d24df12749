"""The rows of a job as a grid of cards."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.batch.models import Item, ItemStatus
from apps.generation.job_request import JobRequest
from apps.generation.models import Job
from apps.generation.recipe.parse import parse
from apps.generation.review.shown_row import is_text
from apps.generation.services import create_job
from apps.generation.views.row_review import cards
from apps.servers.models import Server
from tests.generation.conftest import finish
from tests.generation.recipe.columns.test_columns import LONG
from tests.generation.review.test_review import item
from tests.markup import one_line

HTMX = {"HX-Request": "true"}


def shown(browser: Client, job: Job, query: str = "") -> list[int]:
    answer: Any = browser.get(f"/generate/{job.pk}/cards/{query}")
    return [card.item.index for card in answer.context["cards"]]


def test_the_filters_of_the_table(browser: Client, job: Job) -> None:
    assert shown(browser, job) == [6, 5, 4, 3, 2, 1, 0]  # it runs: the newest first
    assert shown(browser, job, "?status=all") == list(range(10))
    assert shown(browser, job, "?status=accepted") == [0, 1, 2, 3, 4]
    assert shown(browser, job, "?status=rejected&code=length") == [5]
    assert shown(browser, job, "?status=failed&code=length") == []
    Item.objects.filter(batch_id=job.batch_id, index__in=(0, 3)).update(reviewed=True)
    assert shown(browser, job, "?status=unseen") == [1, 2, 4]
    page = browser.get(f"/generate/{job.pk}/cards/?status=all").content.decode()
    assert "Cut off: too long." in page
    assert "Not generated yet." in page
    assert "Text 3." in page
    empty = browser.get(f"/generate/{job.pk}/cards/?status=failed&code=length").content.decode()
    assert "No failed rows with this reason." in empty


@pytest.mark.parametrize("status", ["all", "newest", "accepted"])
def test_pages_go_on_where_the_last_one_ended(
    browser: Client, job: Job, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """Also when rows of an earlier page have left the filter meanwhile."""
    monkeypatch.setattr(cards, "CARDS_A_PAGE", 2)
    rows = shown(browser, job, f"?status={status}")
    answer: Any = browser.get(f"/generate/{job.pk}/cards/?status={status}")
    stretch = answer.context["stretch"]
    assert (stretch.start, stretch.end, stretch.has_next) == (1, 2, True)
    for index in rows:
        browser.post(f"/generate/{job.pk}/cards/{index}/judge/", {"action": "reject"})
    following: Any = browser.get(f"/generate/{job.pk}/cards/?status={status}&after={stretch.last}")
    found = [card.item.index for card in following.context["cards"]]
    everything = {"all": [0, 1, 2, 3], "newest": [6, 5, 4, 3], "accepted": [0, 1, 2, 3]}[status]
    assert rows + found == everything
    first = following.context["stretch"].first
    if status != "accepted":  # both left that filter
        assert shown(browser, job, f"?status={status}&before={first}") == rows


@pytest.mark.parametrize("place", ["x", "1.x", "9" * 30, ""])
def test_a_place_that_is_none_is_the_beginning(browser: Client, job: Job, place: str) -> None:
    for status, first in (("all", 0), ("newest", 6)):
        for word in ("after", "before"):
            assert shown(browser, job, f"?status={status}&{word}={place}")[0] == first


def test_judging_leaves_the_card_where_it_is(browser: Client, job: Job) -> None:
    address = f"/generate/{job.pk}/cards/1/judge/"
    card = browser.post(address, {"action": "reject"}, headers=HTMX).content.decode()
    assert "<html" not in card
    assert "Rejected by you." in card
    assert item(job, 1).status == "rejected"
    card = browser.post(address, {"action": "accept"}, headers=HTMX).content.decode()
    assert "Reviewed" in card
    assert 'value="accept"' not in card
    assert item(job, 1).status == "accepted"
    plain = browser.post(f"{address}?status=accepted", {"action": "accept"})
    assert plain["location"] == f"/generate/{job.pk}/cards/?status=accepted"
    twice = browser.post(f"/generate/{job.pk}/cards/5/judge/", {"action": "reject"}, follow=True)
    assert "Only accepted rows can be rejected" in twice.content.decode()
    assert browser.post(address, {"action": "x"}).status_code == 404


def test_editing(browser: Client, job: Job) -> None:
    form = browser.get(f"/generate/{job.pk}/cards/0/?show=form").content.decode()
    assert 'name="field-text"' in form
    assert 'name="field-product"' not in form  # drawn, not written
    address = f"/generate/{job.pk}/cards/0/judge/"
    wrong = {"action": "edit", "field-label": "so-so"}
    answer = browser.post(address, wrong, headers=HTMX).content.decode()
    assert "does not match the schema" in answer
    assert "Save changes" in answer  # the form stays open
    right = {"action": "edit", "field-text": "Better.", "field-label": "negative"}
    card = browser.post(address, right, headers=HTMX).content.decode()
    assert "Better." in card
    whole = browser.get(f"/generate/{job.pk}/cards/0/?show=whole").content.decode()
    assert "Original: Text 0." in whole


def test_long_texts_are_clipped_and_scores_shown(
    browser: Client, alice: User, server: Server
) -> None:
    job = create_job(
        JobRequest(name="Long", rows=2, seed=1, recipe=parse(LONG)), owner=alice, server=server
    )
    fields = job.spec.recipe.field_names
    output: dict[str, Any] = {
        **dict.fromkeys(fields, "x"),
        **{"title": "<b>Title</b>", "reply": "word " * 200, "judge_reason": "Fine.", "quality": 2},
    }
    finish(job, 0, ItemStatus.REJECTED, code="judged", reason="quality 2 of 5", output=output)
    page = browser.get(f"/generate/{job.pk}/cards/?status=all").content.decode()
    page = one_line(page)
    assert "&lt;b&gt;Title&lt;/b&gt;" in page
    assert 'badge-warn">quality 2 of 5' in page
    assert output["reply"].strip() not in page
    assert f"and {len(fields) - 1 - 6} more fields" in page
    card = browser.get(f"/generate/{job.pk}/cards/0/?show=whole").content.decode()
    assert output["reply"] in card
    assert "more field" not in card
    assert "Show less" in card
    form = browser.get(f"/generate/{job.pk}/cards/0/?show=form").content.decode()
    assert 'name="field-quality"' in form


def test_the_number_of_queries_does_not_grow(browser: Client, job: Job) -> None:
    counted = []
    for status in ("failed", "accepted"):
        with CaptureQueriesContext(connection) as queries:
            assert shown(browser, job, f"?status={status}")
        counted.append(len(queries))
    assert counted[0] == counted[1]


def test_short_values_are_chips_below_the_text(browser: Client, job: Job) -> None:
    answer: Any = browser.get(f"/generate/{job.pk}/cards/?status=accepted")
    card = answer.context["cards"][0]
    assert card.texts
    assert [*card.texts, *card.values] == card.fields
    assert not any(is_text(field) for field in card.values)
