"""GET /: the first page, until a person has begun with something."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.chat.models import Conversation
from apps.classifiers.models import Classifier
from apps.datasets import services as datasets
from apps.datasets.models import Dataset
from apps.generation.models import Job
from apps.servers.models import Server
from tests.markup import visible_text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.mark.usefixtures("server", "embedding_server")
def test_first_page_offers_one_example_for_each_kind_of_work(browser: Client) -> None:
    page = browser.get("/").content.decode()
    for address in ("/chat/new/", "/classify/example/", "/generate/example/"):
        assert f'action="{address}"' in page
    assert "Use your own model" in page
    assert 'href="/chat/import/"' in page


def test_a_door_that_cannot_work_says_why(browser: Client) -> None:
    page = browser.get("/").content.decode()
    assert "<form" not in page.split('class="doors"')[1].split('class="side-doors"')[0]
    assert visible_text(page).count("Servers") >= 4  # the rail, and a link at each door


def test_the_first_page_is_gone_once_something_was_begun(browser: Client, alice: User) -> None:
    Conversation.objects.create(owner=alice, title="Hello")
    assert browser.get("/")["Location"] == "/chat/"
    browser.cookies["place"] = "generate"
    assert browser.get("/")["Location"] == "/generate/"
    browser.cookies["place"] = "https://elsewhere.example"
    assert browser.get("/")["Location"] == "/chat/"


def test_what_others_have_begun_counts_for_them_alone(browser: Client, bob: User) -> None:
    Conversation.objects.create(owner=bob, title="Hello")
    datasets.create_example_dataset(bob)
    assert "Workbench is ready" in browser.get("/").content.decode()


@pytest.mark.usefixtures("embedding_server")
def test_one_click_trains_on_the_example(browser: Client, alice: User) -> None:
    answer = browser.post("/classify/example/")
    classifier = Classifier.objects.get(owner=alice)
    assert answer["Location"] == f"/classify/{classifier.pk}/"
    assert classifier.dataset.rows == 400
    assert classifier.runs.count() == 1


def test_without_an_embedding_server_nothing_is_left_behind(browser: Client) -> None:
    assert browser.post("/classify/example/")["Location"] == "/"
    assert not Dataset.objects.exists()


@pytest.mark.usefixtures("server")
def test_one_click_starts_a_job_of_twenty_rows(browser: Client, alice: User) -> None:
    answer = browser.post("/generate/example/")
    job = Job.objects.get(owner=alice)
    assert answer["Location"] == f"/generate/{job.pk}/"
    assert job.batch.wanted == 20


def test_without_a_server_no_job_is_made(browser: Client) -> None:
    assert browser.post("/generate/example/")["Location"] == "/"
    assert not Server.objects.exists()
    assert not Job.objects.exists()
