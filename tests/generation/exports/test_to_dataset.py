"""A job's rows in datasets: which of them, how they are marked, and the way back to training."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.batch.models import ItemStatus
from apps.classifiers.models import Classifier
from apps.datasets.models import Dataset
from apps.datasets.services import create_dataset, undo
from apps.files import ExampleRow
from apps.generation.exports import to_dataset
from apps.generation.exports.add_to_dataset import add_job_rows
from apps.generation.models import Job
from tests.generation.conftest import finish

pytestmark = pytest.mark.django_db
FIELDS = {"text_field": "text", "label_field": "label"}


@pytest.fixture
def real(alice: User) -> Dataset:
    rows = [
        ExampleRow("Where is the refund that I was promised?", "negative", "test"),
        ExampleRow("text 1.", "positive", "train"),
    ]
    return create_dataset(owner=alice, name="Real", rows=rows, origin="post.csv")


def test_rows_are_added_as_one_change(api: Client, job: Job, real: Dataset) -> None:
    """Of five rows one is there, one repeats a test row to the letter, one nearly, one is empty."""
    for index, text in enumerate(
        [
            "A new text.",
            " TEXT 1. ",
            "where is the refund that i was promised?",
            "Hello. Where is the refund that I was promised? Thanks.",
            " ",
        ]
    ):
        finish(job, index, ItemStatus.ACCEPTED, output={"text": text, "label": "positive"})
    address = f"/api/v1/jobs/{job.pk}/add-to-dataset"
    body = {"dataset": real.pk, **FIELDS}
    found = api.post(address, body, content_type="application/json").json()
    assert found == {
        **{"id": real.pk, "rows": 3, "added": 1, "known": 1, "tests": 2, "unusable": 1},
    }
    row = real.examples.get(text="A new text.")
    assert (row.label, row.split) == ("positive", "train")
    assert row.origin == f"synthetic, row 1, job {job.pk}"
    real.refresh_from_db()
    last = real.revisions.get()
    assert last.what == "1 synthetic row of the job “Reviews” was added"
    again = api.post(address, body, content_type="application/json").json()
    assert (again["added"], again["known"], again["rows"]) == (0, 2, 3)
    undo(real)
    real.refresh_from_db()
    assert real.rows == 2


@pytest.mark.parametrize(
    ("change", "status"),
    [({"dataset": 999_999}, 404), ({"text_field": "x"}, 422), ({"label_field": "x"}, 422)],
)
def test_what_cannot_be_added(
    api: Client, job: Job, real: Dataset, change: dict[str, Any], status: int
) -> None:
    address = f"/api/v1/jobs/{job.pk}/add-to-dataset"
    body = {"dataset": real.pk, **FIELDS, **change}
    assert api.post(address, body, content_type="application/json").status_code == status
    job.batch.items.update(status=ItemStatus.PENDING)
    body = {"dataset": real.pk, **FIELDS}
    assert api.post(address, body, content_type="application/json").status_code == 409


def test_nothing_goes_into_anothers_dataset(
    browser: Client, bobs_api: Client, job: Job, bob: User, real: Dataset
) -> None:
    rows = [ExampleRow("A.", "a")]
    theirs = create_dataset(owner=bob, name="Bob's", rows=rows, origin="x")
    address = f"/generate/{job.pk}/add-to-dataset/"
    assert browser.post(address, {"dataset": theirs.pk, **FIELDS}).status_code == 404
    answer = bobs_api.post(
        f"/api/v1/jobs/{job.pk}/add-to-dataset",
        {"dataset": theirs.pk, **FIELDS},
        content_type="application/json",
    )
    assert answer.status_code == 404
    assert "Bob's" not in browser.get(f"/generate/{job.pk}/").content.decode()


def test_from_a_classifier_and_back_to_it(browser: Client, job: Job, real: Dataset) -> None:
    page = browser.get(f"/generate/new/?dataset={real.pk}&label=positive&classifier=17")
    draft = page.context["draft"]
    assert (draft.for_dataset, draft.for_classifier) == (str(real.pk), "17")
    form = {"name": "More", "recipe": draft.recipe, "rows": "20", "refill": "1"}
    form |= {"for_dataset": draft.for_dataset, "for_classifier": draft.for_classifier}
    assert browser.post("/generate/new/", form).status_code == 302
    more = Job.objects.get(name="More")
    assert (more.for_dataset, more.for_classifier) == (real, 17)
    again = browser.get(f"/generate/new/?like={more.pk}").context["draft"]
    assert (again.for_dataset, again.for_classifier) == (str(real.pk), "17")

    Job.objects.filter(pk=job.pk).update(for_dataset=real, for_classifier=17)
    Classifier.objects.create(pk=17, owner=job.owner, name="C", dataset=real)
    assert (
        "Add to “Real” and train again" in browser.get(f"/generate/{job.pk}/use/").content.decode()
    )
    answer = browser.post(f"/generate/{job.pk}/add-to-dataset/", {"train": "1", **FIELDS})
    assert answer.status_code == 307  # the browser posts on
    assert urlsplit(answer["location"]).path == "/classify/17/train/"
    real.refresh_from_db()
    assert real.rows == 2 + 4
    # With nothing new to learn from nothing is trained.
    answer = browser.post(f"/generate/{job.pk}/add-to-dataset/", {"train": "1", **FIELDS})
    assert answer["location"] == f"/datasets/{real.pk}/"


def test_without_its_classifier_the_rows_are_added_and_nothing_is_trained(
    browser: Client, bob: User, job: Job, real: Dataset
) -> None:
    """One that was deleted, of somebody else, or trained on other rows."""
    Job.objects.filter(pk=job.pk).update(for_dataset=real, for_classifier=17)
    url = f"/generate/{job.pk}/"
    assert "and train again" not in browser.get(f"{url}use/").content.decode()
    made = Classifier.objects.create(pk=17, owner=job.owner, name="C")
    assert "and train again" not in browser.get(f"{url}use/").content.decode()
    Classifier.objects.filter(pk=made.pk).update(owner=bob, dataset=real)
    assert "and train again" not in browser.get(f"{url}use/").content.decode()
    form = {"train": "1", **FIELDS}
    answer = browser.post(f"{url}add-to-dataset/", form, follow=True)
    assert answer.redirect_chain == [(f"/datasets/{real.pk}/", 302)]
    assert "Nothing was trained" in answer.content.decode()
    real.refresh_from_db()
    assert real.rows == 2 + 4
    real.delete()
    answer = browser.post(f"{url}add-to-dataset/", form, follow=True)
    assert answer.redirect_chain == [(f"{url}use/", 302)]
    assert "Choose another one" in answer.content.decode()


def test_no_two_fields_of_the_page_have_one_name(browser: Client, job: Job, real: Dataset) -> None:
    page = browser.get(f"/generate/{job.pk}/use/").content.decode()
    labels = re.findall(r'<label for="[^"]+">(.*?)</label>', page.split("<main")[1])
    names = [re.sub("<[^>]+>", "", label) for label in labels]
    assert {"Text", "Text of the new rows", "Label", "Label of the new rows"} <= set(names)
    assert len(set(names)) == len(names)


def test_real_rows_are_those_that_no_model_wrote(
    browser: Client, job: Job, real: Dataset, alice: User
) -> None:
    def offered() -> list[str]:
        found = browser.get(f"/generate/{job.pk}/use/").context["real"]
        return [dataset.name for dataset in found]

    to_dataset.comparison(job=job, real=real, **FIELDS)
    assert Dataset.objects.count() == 3
    assert offered() == ["Real"]
    add_job_rows(job=job, dataset=real, by=alice, **FIELDS)
    assert offered() == []
    undo(real)
    assert offered() == ["Real"]
