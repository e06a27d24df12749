"""The classifier pages."""

import html
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.classifiers.models import Classifier, Run, Status
from apps.servers.models import DefaultServer, Server
from tests.classifiers import factories
from tests.markup import one_line

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _server(embedding_server: Server) -> None:
    pass


def test_the_first_visit_offers_a_way_to_start(browser: Client) -> None:
    page = browser.get("/classify/").content.decode()
    assert "Upload files" in page
    assert "Load example dataset" in page


def test_classifier_is_created_from_the_form(
    browser: Client, alice: User, announced: list[int]
) -> None:
    data = factories.dataset(alice)
    assert (
        f'value="{data.pk}" selected'
        in browser.get(f"/classify/new/?dataset={data.pk}").content.decode()
    )
    answer = browser.post("/classify/new/", {"name": "Topics", "dataset": data.pk})
    made = Classifier.objects.get()
    assert (answer.status_code, answer["location"]) == (302, f"/classify/{made.pk}/")
    assert announced == [factories.newest(made).task_id]
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    assert 'hx-trigger="every 1s"' in page
    assert "Queued" in page
    factories.train(factories.newest(made))
    fragment = browser.get(f"/classify/{made.pk}/progress/").content.decode()
    assert 'hx-trigger="load"' in fragment
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    assert 'hx-trigger="every' not in page
    for words in ("Accuracy", "Try a text", "Weakest labels", "Version 1 is live", "Train again"):
        assert words in page
    assert "Topics" in browser.get("/classify/").content.decode()
    assert f"/api/v1/classifiers/{made.pk}/predict" in (
        browser.get(f"/classify/{made.pk}/export/").content.decode()
    )
    charts = browser.get(f"/classify/{made.pk}/runs/1/charts/").json()
    assert charts["labels"] == ["card", "hello", "rate"]
    assert sum(count for _, _, count in charts["cells"]) == 6
    assert browser.get(f"/classify/{made.pk}/?run=1").status_code == 200
    assert browser.get(f"/classify/{made.pk}/?run=7").status_code == 404


def test_trying_a_text(browser: Client, alice: User) -> None:
    made = factories.trained(alice)
    url = f"/classify/{made.pk}/try/"
    page = factories.post(browser, url, {"text": "HELLO THERE GOOD MORNING 99"}).content.decode()
    assert page.index("hello") < page.index("rate")
    assert "%" in page
    assert "appear here" in factories.post(browser, url, {"text": " "}).content.decode()
    assert "tokens long" in factories.post(browser, url, {"text": "long " * 1500}).content.decode()


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED, *Status])
def test_classifier_page_opens_in_every_state(browser: Client, alice: User, status: Status) -> None:
    made = factories.classifier(alice)
    if status == Status.READY:
        made = factories.trained(alice)
    Run.objects.filter(classifier=made).update(status=status, error="<b>because</b>")
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    assert "<b>because" not in page
    assert browser.get("/classify/").status_code == 200


def test_train_cancel_and_delete(browser: Client, alice: User, announced: list[int]) -> None:
    made = factories.classifier(alice)
    run = factories.newest(made)
    browser.post(f"/classify/{made.pk}/train/")
    assert announced == [run.task_id]
    browser.post(f"/classify/{made.pk}/cancel/")
    assert factories.newest(made).status == Status.CANCELLED
    browser.post(f"/classify/{made.pk}/train/")
    assert factories.newest(made).number == 2
    answer = browser.post(f"/classify/{made.pk}/delete/", headers={"HX-Request": "true"})
    assert answer["HX-Redirect"] == "/classify/"
    assert not Classifier.objects.exists()


def test_classifier_pages_hide_classifiers_of_others(bobs_browser: Client, alice: User) -> None:
    made = factories.classifier(alice)
    for path in ("", "progress/", "runs/1/charts/"):
        assert bobs_browser.get(f"/classify/{made.pk}/{path}").status_code == 404
    for path in ("train/", "cancel/", "delete/", "try/"):
        assert bobs_browser.post(f"/classify/{made.pk}/{path}").status_code == 404
    page = bobs_browser.post("/classify/new/", {"name": "x", "dataset": made.dataset_id})
    assert page.status_code == 422
    assert "Topics" not in bobs_browser.get("/classify/").content.decode()


def test_classifier_actions_refuse_other_methods(browser: Client, alice: User) -> None:
    made = factories.classifier(alice)
    for path in ("train/", "cancel/", "delete/", "try/"):
        assert browser.get(f"/classify/{made.pk}/{path}").status_code == 405
    assert browser.post(f"/classify/{made.pk}/").status_code == 405


def test_new_classifier_form_refuses_bad_input(browser: Client, alice: User) -> None:
    data = factories.dataset(alice)
    same = {"name": "x", "dataset": data.pk, "test_dataset": data.pk}
    assert (
        "other than the training dataset" in browser.post("/classify/new/", same).content.decode()
    )
    assert browser.post("/classify/new/", {"dataset": data.pk}).status_code == 422
    assert browser.get("/classify/new/?dataset=x").status_code == 404
    DefaultServer.objects.all().delete()
    answer = browser.post("/classify/new/", {"name": "x", "dataset": data.pk})
    assert answer.status_code == 422
    assert "No server set for" in answer.content.decode()


def test_the_list_comes_again_while_something_trains(
    browser: Client, bobs_browser: Client, alice: User
) -> None:
    made = factories.ready(alice)
    run = Run.objects.create(classifier=made, number=2, status=Status.FITTING)
    address = f"/classify/list/?classifier={made.pk}&amp;dataset="
    assert address in browser.get(f"/classify/{made.pk}/").content.decode()
    rows = browser.get(html.unescape(address)).content.decode()
    assert "Training" in rows
    assert 'aria-current="page"' in rows
    assert "every 3s" in rows
    assert "Topics" not in bobs_browser.get(html.unescape(address)).content.decode()
    Run.objects.filter(pk=run.pk).update(status=Status.READY)
    rows = browser.get(html.unescape(address)).content.decode()
    assert "live" in rows
    assert "every 3s" not in rows


def test_labels_are_escaped(browser: Client, alice: User) -> None:
    rows = [
        type(row)(row.text, "<script>alert(1)</script>" if row.label == "card" else row.label)
        for row in factories.rows()
    ]
    made = factories.trained(alice, factories.dataset(alice, rows, "<img src=x>"))
    for url in (
        f"/classify/{made.pk}/",
        "/classify/",
        "/datasets/",
        f"/datasets/{made.dataset_id}/",
    ):
        page = browser.get(url).content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_pages_ask_the_same_number_of_queries(
    browser: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = factories.classifier(alice)
    for number in range(2, 10):
        factories.classifier(alice, made.dataset)
        Run.objects.create(classifier=made, number=number, status=Status.CANCELLED)
        with django_assert_num_queries(10):
            browser.get("/classify/")
        with django_assert_num_queries(10):
            browser.get(f"/classify/{made.pk}/")


def test_what_it_confuses_leads_to_rows_for_it(browser: Client, alice: User) -> None:
    """From the pair on the page to the recipe builder, with both labels as quotas."""
    made = factories.trained(alice)
    run = factories.newest(made)
    run.confused_pairs = [
        {"label": "card", "predicted": "rate", "count": 2, "support": 4, "texts": ["a & b"]}
    ]
    run.confusion = [[2, 0, 2], [0, 4, 0], [0, 0, 4]]
    run.save()
    page = browser.get(f"/classify/{made.pk}/").content.decode()
    link = html.unescape(re.findall(r'href="(/generate/new/[^"]*)"', page)[0])
    assert f"dataset={made.dataset_id}&label=card&label=rate" in link
    builder = browser.get(link)
    assert builder.status_code == 200
    assert "card" in builder.content.decode()


def test_a_link_may_name_the_rows_to_judge_on(browser: Client, alice: User) -> None:
    train, test = factories.dataset(alice), factories.dataset(alice, name="Real rows")
    page = browser.get(f"/classify/new/?dataset={train.pk}&test_dataset={test.pk}")
    assert page.context["form"].initial["test_dataset"] == test


def test_labels_that_differ_in_case_can_be_merged_from_the_run(
    browser: Client, alice: User
) -> None:
    labels = {"card": "Lost Card", "rate": "lost_card", "hello": "hello"}
    rows = [type(row)(row.text, labels[row.label]) for row in factories.rows()]
    made = factories.trained(alice, factories.dataset(alice, rows))
    page = one_line(browser.get(f"/classify/{made.pk}/").content.decode())
    assert "differ only in case or spacing, but were trained as separate labels" in page
    assert (
        "trained as separate labels"
        not in browser.get(f"/classify/{made.pk}/?run=1").content.decode()
    )
    url = re.findall(r'action="(/datasets/\d+/merge[^"]*)"', page)[0]
    browser.post(url, {"label": ["Lost Card", "lost_card"], "into": "lost_card"})
    assert made.dataset is not None
    made.dataset.refresh_from_db()
    assert set(made.dataset.label_counts) == {"lost_card", "hello"}
    assert "trained as separate labels" not in browser.get(f"/classify/{made.pk}/").content.decode()
