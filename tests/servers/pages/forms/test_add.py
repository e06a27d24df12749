"""POST /servers/add/"""

import pytest
from django.test import Client

from apps.servers.models import Server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_added_server_is_probed_and_shown(staff_browser: Client, llama: LlamaProcess) -> None:
    answer = staff_browser.post(
        "/servers/add/",
        {"name": "Mine", "base_url": llama.root_url, "api_key": llama.api_key},
        follow=True,
    )
    assert "Added “Mine”. Status: ready." in answer.content.decode()
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
        "http://256.256.256.256",
    ],
)
def test_an_address_that_is_none(staff_browser: Client, address: str) -> None:
    data = {"name": "x", "base_url": address, "api_key": "very-secret"}
    answer = staff_browser.post("/servers/add/", data)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'id="id_base_url_error"' in page  # beside the field, which names it
    field = page.split('name="base_url"')[1].split(">")[0]
    assert "id_base_url_error" in field
    assert "autofocus" in field  # far down a long page
    assert "very-secret" not in page
    assert not Server.objects.exists()


def test_a_name_taken(staff_browser: Client, server: Server) -> None:
    data = {"name": server.name, "base_url": "http://127.0.0.1:1"}
    answer = staff_browser.post("/servers/add/", data)
    assert answer.status_code == 422
    assert 'id="id_name_error"' in answer.content.decode()


def test_one_that_does_not_answer_is_added_all_the_same(staff_browser: Client) -> None:
    data = {"name": "Later", "base_url": "http://127.0.0.1:1"}
    answer = staff_browser.post("/servers/add/", data, follow=True)
    page = answer.content.decode()
    assert "Added “Later”. Status: offline. The model server is not responding." in page
    assert [str(told.level_tag) for told in answer.context["messages"]] == ["warning"]


def test_a_host_name_of_a_compose_file_is_an_address(staff_browser: Client) -> None:
    staff_browser.post("/servers/add/", {"name": "x", "base_url": "http://llama-swap:8080"})
    assert Server.objects.get().base_url == "http://llama-swap:8080/v1"


def test_a_scheme_is_added(staff_browser: Client) -> None:
    staff_browser.post("/servers/add/", {"name": "x", "base_url": "localhost:1"})
    assert Server.objects.get().base_url == "http://localhost:1/v1"


def test_a_key_that_cannot_be_sent(staff_browser: Client) -> None:
    data = {"name": "x", "base_url": "http://127.0.0.1:1", "api_key": "schl\u00fcssel"}
    answer = staff_browser.post("/servers/add/", data)
    assert (answer.status_code, 'id="id_api_key_error"' in answer.content.decode()) == (422, True)


def test_only_staff(browser: Client) -> None:
    data = {"name": "x", "base_url": "http://127.0.0.1:1"}
    assert browser.post("/servers/add/", data).status_code == 403
    assert not Server.objects.exists()


def test_add_refuses_get(staff_browser: Client) -> None:
    assert staff_browser.get("/servers/add/").status_code == 405
