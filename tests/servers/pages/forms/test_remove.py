"""POST /servers/<pk>/remove/"""

import pytest
from django.test import Client

from apps.servers.models import DefaultServer, Server

pytestmark = pytest.mark.django_db(transaction=True)


def test_remove_deletes_the_server_and_its_defaults(staff_browser: Client, server: Server) -> None:
    answer = staff_browser.post(f"/servers/{server.pk}/remove/", follow=True)
    assert "Removed “Chat”. Chats and jobs are kept." in answer.content.decode()
    assert not Server.objects.exists()
    assert not DefaultServer.objects.exists()


def test_what_the_settings_name_stays(staff_browser: Client, server: Server) -> None:
    Server.objects.update(from_settings=True)
    answer = staff_browser.post(f"/servers/{server.pk}/remove/", follow=True)
    assert "is set by an environment variable" in answer.content.decode()
    assert Server.objects.exists()


def test_none_there(staff_browser: Client) -> None:
    assert staff_browser.post("/servers/999/remove/").status_code == 404


def test_only_staff(browser: Client, server: Server) -> None:
    assert browser.post(f"/servers/{server.pk}/remove/").status_code == 403
    assert Server.objects.exists()


def test_remove_refuses_get(staff_browser: Client, server: Server) -> None:
    assert staff_browser.get(f"/servers/{server.pk}/remove/").status_code == 405
