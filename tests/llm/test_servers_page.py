import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.llm.models import DefaultServer, Server
from tests.llama_process import LlamaProcess, free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def staff_browser(carol: User) -> Client:
    client = Client()
    client.force_login(carol)
    return client


def test_it_works(browser: Client, server: Server) -> None:
    assert server.name in browser.get("/servers/").content.decode()
    cards = browser.get("/servers/cards/").content.decode()
    assert "ready" in cards
    assert "the server&#x27;s /props" in cards
    assert cards.count('class="slot"') == 4


def test_no_server_yet(browser: Client) -> None:
    assert "No model server yet" in browser.get("/servers/cards/").content.decode()


def test_a_server_that_is_away_is_named_with_its_reason(browser: Client) -> None:
    Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    cards = browser.get("/servers/cards/").content.decode()
    assert "unreachable" in cards
    assert "Is it running?" in cards


def test_staff_adds_one(staff_browser: Client, llama: LlamaProcess) -> None:
    answer = staff_browser.post(
        "/servers/add/",
        {"name": "Mine", "base_url": llama.root_url, "api_key": llama.api_key},
        follow=True,
    )
    assert "Mine was added: Ready." in answer.content.decode()
    server = Server.objects.get()
    assert server.base_url == llama.base_url
    assert llama.api_key not in server.encrypted_key
    assert llama.api_key not in answer.content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://x/v1",
        "file:///etc/passwd",
        "http://a@b/v1",
        "http://a\\@b",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_is_none(staff_browser: Client, address: str) -> None:
    answer = staff_browser.post("/servers/add/", {"name": "x", "base_url": address})
    assert answer.status_code == 422
    assert not Server.objects.exists()


def test_a_host_name_of_a_compose_file_is_an_address(staff_browser: Client) -> None:
    staff_browser.post("/servers/add/", {"name": "x", "base_url": "http://llama-swap:8080"})
    assert Server.objects.get().base_url == "http://llama-swap:8080/v1"


def test_only_staff_adds_and_removes(browser: Client, server: Server) -> None:
    assert browser.post("/servers/add/", {}).status_code == 403
    assert browser.post(f"/servers/{server.pk}/remove/").status_code == 403


def test_staff_removes_one(staff_browser: Client, server: Server) -> None:
    staff_browser.post(f"/servers/{server.pk}/remove/")
    assert not Server.objects.exists()
    assert not DefaultServer.objects.exists()


def test_ten_servers_cost_no_more_queries_than_one(
    browser: Client, server: Server, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(10):
        Server.objects.create(name=f"Server {number}", base_url="http://127.0.0.1:1/v1")
    with django_assert_max_num_queries(5):
        browser.get("/servers/")


def test_staff_makes_another_the_default(staff_browser: Client, server: Server) -> None:
    other = Server.objects.create(name="Other", base_url="http://127.0.0.1:1/v1")
    staff_browser.post(f"/servers/{other.pk}/default/", {"use": "chat"})
    assert DefaultServer.objects.get(use="chat").server == other
    assert DefaultServer.objects.get(use="generation").server == server
    assert staff_browser.post(f"/servers/{other.pk}/default/", {"use": "x"}).status_code == 400


def test_only_staff_makes_a_default(browser: Client, server: Server) -> None:
    assert browser.post(f"/servers/{server.pk}/default/", {"use": "chat"}).status_code == 403
