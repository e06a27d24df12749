"""Reviewing rows one by one: which row comes next, and what is refused."""

from typing import Any

import pytest
from django.test import Client

from apps.batch.models import Item, ItemStatus
from apps.generation.models import Job
from tests.generation.conftest import item_of

HTMX = {"HX-Request": "true"}


def shown(client: Client, job: Job, query: str = "") -> int:
    answer: Any = client.get(f"/generate/{job.pk}/review/?{query}")
    assert answer.status_code == 200
    return int(answer.context["item"].index)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("", 0),
        ("at=3", 3),
        ("status=rejected", 5),
        ("status=running", 0),  # cannot be reviewed
        ("status=accepted&unseen=1", 1),
        ("at=x", 0),
        ("at=-1", 0),
        ("at=" + "9" * 30, 0),
    ],
)
def test_the_row_of_an_address(browser: Client, job: Job, query: str, index: int) -> None:
    Item.objects.filter(batch_id=job.batch_id, index=0).update(reviewed=True)
    assert shown(browser, job, query) == index


def test_the_place_in_the_queue(browser: Client, job: Job) -> None:
    context: Any = browser.get(f"/generate/{job.pk}/review/?at=2").context
    assert (context["before"].index, context["next"].index, context["left"]) == (1, 3, 3)
    assert context["can_edit"]
    assert context["can_accept"]


def test_a_fragment_for_htmx_and_a_page_for_a_boosted_link(browser: Client, job: Job) -> None:
    address = f"/generate/{job.pk}/review/"
    assert "<html" not in browser.get(address, headers=HTMX).content.decode()
    boosted = browser.get(address, headers=HTMX | {"HX-Boosted": "true"}).content.decode()
    assert "<html" in boosted


def test_without_htmx_the_page_follows(browser: Client, job: Job) -> None:
    form = {"action": "reject", "status": "accepted"}
    answer = browser.post(f"/generate/{job.pk}/review/0/", form)
    assert answer["location"] == f"/generate/{job.pk}/review/?status=accepted"
    assert item_of(job, 0).status == "rejected"


def test_a_refused_edit_keeps_the_row_in_sight(browser: Client, job: Job) -> None:
    form = {"action": "edit", "field-nothing": "x", "status": "accepted"}
    answer: Any = browser.post(f"/generate/{job.pk}/review/2/", form, headers=HTMX)
    assert answer.context["item"].index == 2
    assert answer.context["problem"] == "No field “nothing”."
    assert item_of(job, 2).edited is None


def test_the_verdict_is_shown_with_the_next_row(browser: Client, job: Job) -> None:
    form = {"action": "accept", "status": "accepted", "unseen": "1"}
    answer: Any = browser.post(f"/generate/{job.pk}/review/0/", form, headers=HTMX)
    assert (answer.context["judged"].index, answer.context["item"].index) == (0, 1)
    assert answer.context["undo"]


@pytest.mark.parametrize("action", ["", "delete", "Accept"])
def test_an_unknown_action_changes_nothing(browser: Client, job: Job, action: str) -> None:
    answer = browser.post(f"/generate/{job.pk}/review/0/", {"action": action})
    assert answer.status_code == 404
    assert not item_of(job, 0).reviewed


def test_the_end_of_a_review_says_whether_there_were_rows(browser: Client, job: Job) -> None:
    address = f"/generate/{job.pk}/review/?status=failed"
    assert "All rows reviewed" in browser.get(address).content.decode()
    Item.objects.filter(batch_id=job.batch_id).update(status=ItemStatus.PENDING)
    page = browser.get(address).content.decode()
    assert "No rows yet" in page
    assert "Use the rows" not in page
