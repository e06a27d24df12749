"""A second entry for one server is refused by the form, the API and the test of an address."""

from typing import Any

import pytest
from django.test import Client

from apps.servers.models import Server
from apps.servers.pages.forms import ServerForm
from tests.llama_process import LlamaProcess, free_port
from tests.markup import visible_text

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED = "“GPU box” already has this address and key."


@pytest.fixture
def gpu_box() -> Server:
    server = Server(name="GPU box", base_url=f"http://127.0.0.1:{free_port()}/v1")
    server.set_key("secret")
    server.save()
    return server


def spelled_otherwise(server: Server) -> str:
    return server.base_url.replace("http://127.0.0.1", "LOCALHOST").removesuffix("/v1")


def errors_of(key: str, base_url: str, *, instance: Server | None = None, **more: str) -> Any:
    data = {"name": "Second", "base_url": base_url, "api_key": key, **more}
    return ServerForm(data, instance=instance).errors


def test_the_form_names_the_entry_that_is_there(gpu_box: Server) -> None:
    assert REFUSED in errors_of("secret", spelled_otherwise(gpu_box))["base_url"][0]
    assert not errors_of("another key", gpu_box.base_url)
    assert not errors_of("", gpu_box.base_url)


def test_an_entry_may_not_be_moved_onto_another(gpu_box: Server) -> None:
    other = Server.objects.create(name="Other", base_url="http://127.0.0.1:1/v1")
    assert REFUSED in errors_of("secret", gpu_box.base_url, instance=other)["base_url"][0]


def test_entries_that_are_there_twice_can_still_be_changed(gpu_box: Server) -> None:
    twin = Server(name="Twin", base_url=gpu_box.base_url, encrypted_key=gpu_box.encrypted_key)
    twin.save()
    assert not errors_of("", gpu_box.base_url, instance=twin, parallel="3")
    assert not errors_of("", gpu_box.base_url, instance=twin, forget_key="on")


def test_the_api_refuses_it_too(staff_api: Client, gpu_box: Server) -> None:
    body = {"name": "Second", "base_url": spelled_otherwise(gpu_box), "api_key": "secret"}
    refused = staff_api.post("/api/v1/servers", body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "address_taken")
    assert REFUSED in refused.json()["detail"]

    other = Server.objects.create(name="Other", base_url="http://127.0.0.1:1/v1")
    change = {"base_url": gpu_box.base_url, "api_key": "secret"}
    refused = staff_api.patch(
        f"/api/v1/servers/{other.pk}", change, content_type="application/json"
    )
    assert refused.status_code == 409
    other.refresh_from_db()
    assert other.base_url == "http://127.0.0.1:1/v1"

    renamed = staff_api.patch(
        f"/api/v1/servers/{gpu_box.pk}", {"name": "Box"}, content_type="application/json"
    )
    assert renamed.status_code == 200


def test_a_test_of_the_address_says_so_before(
    staff_browser: Client, server: Server, llama: LlamaProcess
) -> None:
    typed = {"base_url": llama.root_url, "api_key": llama.api_key}
    page = staff_browser.post("/servers/test/", typed).content.decode()
    assert f"“{server.name}” already has this address and key." in visible_text(page)
    assert "Use it for" not in page

    keyless = {"base_url": llama.root_url}
    shown = visible_text(staff_browser.post("/servers/test/", keyless).content.decode())
    assert f"“{server.name}” already has this address, with another key." in shown


def test_another_key_at_one_address_is_added_with_a_warning(
    staff_browser: Client, gpu_box: Server
) -> None:
    data = {"name": "Second", "base_url": gpu_box.base_url, "api_key": "other"}
    page = staff_browser.post("/servers/add/", data, follow=True).content.decode()
    assert "“GPU box” already has this address, with another key." in visible_text(page)
    assert Server.objects.count() == 2
