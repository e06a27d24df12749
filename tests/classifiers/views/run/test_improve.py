"""The rows to review next, and the queue made of them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.classifiers.models import Classifier, ReviewReason, Run
from apps.datasets.models import QueueItem
from tests.classifiers import factories

pytestmark = pytest.mark.django_db
REASONS = (ReviewReason.LABEL_ERROR, ReviewReason.UNCERTAIN, ReviewReason.UNCERTAIN)


@pytest.fixture
def made(alice: User) -> Classifier:
    made = factories.ready(alice)
    queue = [
        {
            **{"index": index, "reason": reason.value, "score": 0.1, "suggested": ["rate"]},
            **{"text": f"text {index}", "label": "card"},
        }
        for index, reason in enumerate(REASONS)
    ]
    Run.objects.update(review_queue=queue)
    return made


def test_improve_counts_rows_by_reason(browser: Client, made: Classifier) -> None:
    context = browser.get(f"/classify/{made.pk}/improve/").context
    assert {entry["reason"]: entry["count"] for entry in context["counts"]} == {
        "label_error": 1,
        "uncertain": 2,
    }
    assert (context["total"], context["whole"], context["reviewed"]) == (3, 3, 0)


def test_improve_filters_by_reason(browser: Client, made: Classifier) -> None:
    context = browser.get(f"/classify/{made.pk}/improve/", {"reason": "uncertain"}).context
    assert [row["index"] for row in context["rows"]] == [1, 2]


def test_improve_queues_the_chosen_rows(browser: Client, made: Classifier) -> None:
    answer = browser.post(f"/classify/{made.pk}/improve/", {"reason": "uncertain"})
    assert answer.status_code == 302
    assert f"/datasets/{made.dataset_id}/label/?queue=" in answer["location"]
    assert list(QueueItem.objects.order_by("index").values_list("index", flat=True)) == [1, 2]


def test_improve_leaves_out_rows_that_were_reviewed(browser: Client, made: Classifier) -> None:
    browser.post(f"/classify/{made.pk}/improve/", {"reason": "label_error"})
    QueueItem.objects.update(seen=True)
    context = browser.get(f"/classify/{made.pk}/improve/").context
    assert (context["whole"], context["reviewed"]) == (2, 1)


def test_improve_of_an_unknown_reason_queues_nothing(browser: Client, made: Classifier) -> None:
    assert browser.post(f"/classify/{made.pk}/improve/", {"reason": "bored"}).status_code == 200
    assert not QueueItem.objects.exists()


def test_improve_of_someone_else_is_not_found(bobs_browser: Client, made: Classifier) -> None:
    assert bobs_browser.get(f"/classify/{made.pk}/improve/").status_code == 404
    assert bobs_browser.post(f"/classify/{made.pk}/improve/").status_code == 404
    assert not QueueItem.objects.exists()


def test_improve_knows_get_and_post_only(browser: Client, made: Classifier) -> None:
    assert browser.put(f"/classify/{made.pk}/improve/").status_code == 405
