"""GET and POST /servers/<pk>/"""

import pytest
from django.test import Client

from apps.servers.models import Server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


def test_edit_saves_name_and_address_and_hides_the_key(
    staff_browser: Client, server: Server, llama: LlamaProcess
) -> None:
    page = staff_browser.get(f"/servers/{server.pk}/").content.decode()
    assert server.name in page
    assert server.base_url in page
    assert llama.api_key not in page
    data = {"name": "Renamed", "base_url": server.base_url, "api_key": ""}
    answer = staff_browser.post(f"/servers/{server.pk}/", data, follow=True)
    assert "Saved “Renamed”. Status: ready." in answer.content.decode()  # with the key it had


def test_edit_replaces_the_key(staff_browser: Client, server: Server) -> None:
    data = {"name": server.name, "base_url": server.base_url, "api_key": "wrong"}
    answer = staff_browser.post(f"/servers/{server.pk}/", data, follow=True)
    assert "Status: key rejected." in answer.content.decode()
    server.refresh_from_db()
    assert server.endpoint.api_key == "wrong"


def test_the_key_is_forgotten(staff_browser: Client, server: Server) -> None:
    data = {"name": server.name, "base_url": server.base_url, "forget_key": "on"}
    staff_browser.post(f"/servers/{server.pk}/", data)
    server.refresh_from_db()
    assert server.endpoint.api_key == ""


def test_bad_input_stands_at_its_field_and_changes_nothing(
    staff_browser: Client, server: Server
) -> None:
    data = {"name": "Other", "base_url": "ftp://x"}
    answer = staff_browser.post(f"/servers/{server.pk}/", data)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="id_base_url_error"' in page
    assert f'<h1 class="wrap-anywhere">{server.name}</h1>' in page
    server.refresh_from_db()
    assert server.name == "Chat"


def test_what_the_settings_name_is_changed_there(staff_browser: Client, server: Server) -> None:
    Server.objects.update(from_settings=True)
    page = staff_browser.get(f"/servers/{server.pk}/").content.decode()
    assert "are set by environment variables" in page
    assert "Remove server" not in page
    data = {
        "name": server.name,
        "base_url": "http://127.0.0.1:1/v1",
        "api_key": "x",
        "parallel": 3,
    }
    staff_browser.post(f"/servers/{server.pk}/", data)
    changed = Server.objects.get()
    assert changed.parallel == 3
    assert changed.endpoint == server.endpoint


def test_none_there(staff_browser: Client) -> None:
    assert staff_browser.get("/servers/999/").status_code == 404


def test_only_staff(browser: Client, server: Server) -> None:
    assert browser.get(f"/servers/{server.pk}/").status_code == 403
    assert browser.post(f"/servers/{server.pk}/", {"name": "x"}).status_code == 403


def test_edit_refuses_put(staff_browser: Client, server: Server) -> None:
    assert staff_browser.put(f"/servers/{server.pk}/").status_code == 405
