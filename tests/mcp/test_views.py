"""The page of the tool servers: everybody sees it, staff alone changes it."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.core import tools
from apps.mcp.models import ToolServer, Transport
from tests.conftest import NOBODY
from tests.llama_process import free_port
from tests.mcp.conftest import COMMAND, KEY, create_command

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "API_TOKEN=very-secret"


def given(**changes: str) -> dict[str, str]:
    form = {
        "headers": "",
        "name": "My Kettle!",
        "transport": "stdio",
        "command": COMMAND,
        "enabled": "on",
    }
    return form | {"url": "", "environment": "", "api_key": ""} | changes


def test_a_command_is_added_asked_and_offered(staff: Client, browser: Client) -> None:
    answer = staff.post("/tools/add/", given(environment=SECRET), follow=True)
    page = answer.content.decode()
    assert "My Kettle! added: 7 tools." in page
    assert "my_kettle__pour" in page
    assert COMMAND in page
    assert "very-secret" not in page
    server = ToolServer.objects.get()
    assert "very-secret" not in server.encrypted_environment
    assert server.environment == {"API_TOKEN": "very-secret"}
    names = [tool.name for tool in tools.available(NOBODY)]
    assert names == sorted(names)
    assert "my_kettle__pour" in names

    shown = browser.get("/tools/").content.decode()  # anybody else: no command, nothing to press
    assert "my_kettle__pour" in shown
    assert COMMAND not in shown
    assert "Refresh tools" not in shown


def test_another_address_is_another_server(staff: Client, http_kettle: str) -> None:
    form = given(name="Far", transport="http", url=http_kettle, command="", api_key="wrong")
    page = staff.post("/tools/add/", form, follow=True).content.decode()
    assert "The API key is missing or was rejected (401). Update it under Edit." in page
    server = ToolServer.objects.get()
    form = given(name="Further", transport="http", url=http_kettle, command="", api_key=KEY)
    page = staff.post(f"/tools/{server.pk}/", form, follow=True).content.decode()
    assert "Further saved: 7 tools." in page
    assert KEY not in page
    server.refresh_from_db()
    assert (server.slug, server.error) == ("far", "")
    assert {tool["name"].split("__")[0] for tool in server.tools} == {"far"}

    gone = f"http://127.0.0.1:{free_port()}/mcp"
    form = given(name="Further", transport="http", url=gone, command="")
    page = staff.post(f"/tools/{server.pk}/", form, follow=True).content.decode()
    assert (
        "The tool server is not responding. Check that it is running and that the "
        "address is correct." in page
    )
    server.refresh_from_db()
    assert (server.tools, server.checked_at) == ([], None)
    assert server.headers == {}  # another host is not sent what was stored for this one


def test_what_is_stored_stays_where_the_host_does(staff: Client, http_server: ToolServer) -> None:
    form = given(name="Far", transport="http", url=f"{http_server.url}?a=1", command="")
    staff.post(f"/tools/{http_server.pk}/", form)
    http_server.refresh_from_db()
    assert http_server.headers == {"Authorization": f"Bearer {KEY}"}


def test_last_words_are_for_admins(staff: Client, browser: Client) -> None:
    create_command(error="The command did not respond.", error_output="key=123", enabled=True)
    assert "Its output: key=123" in staff.get("/tools/").content.decode()
    assert "key=123" not in browser.get("/tools/").content.decode()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "This field is required."),
        ({"command": ""}, "Enter the command that starts the server."),
        ({"command": 'echo "half'}, "A closing quotation mark is missing."),
        ({"environment": "A=1\nnot a line"}, "Line 2 is not NAME=value."),
        ({"transport": "http", "url": "ftp://x"}, "Enter an address such as"),
        ({"transport": "http", "url": "http://me:pw@x/"}, "Enter an address such as"),
        ({"transport": "http", "url": ""}, "Enter an address such as"),
        ({"transport": "http", "url": "http://[/mcp"}, "Enter an address such as"),
        ({"transport": "http", "url": "http://[::::]/mcp"}, "Enter an address such as"),
        ({"transport": "http", "url": "http://a:99999/mcp"}, "Enter an address such as"),
        ({"transport": "carrier pigeon"}, "Select a valid choice."),
        ({"headers": "X-Key: abc\nHost: elsewhere"}, "Line 2 is not a header such as"),
        ({"headers": "X-Key: a\u00e4"}, "Line 1 is not a header such as"),
        ({"headers": "no header"}, "Line 1 is not a header such as"),
        ({"name": "Kettle"}, "A tool server with this name already exists."),
    ],
)
def test_mcp_form_names_the_bad_field(staff: Client, changes: dict[str, str], said: str) -> None:
    create_command()
    answer = staff.post("/tools/add/", given(**changes))
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert ToolServer.objects.count() == 1


def test_only_staff_may_change_anything(browser: Client) -> None:
    server = create_command()
    assert browser.post("/tools/add/", given()).status_code == 403
    for path in ("", "look/", "remove/"):
        assert browser.post(f"/tools/{server.pk}/{path}", given()).status_code == 403
    assert browser.get(f"/tools/{server.pk}/").status_code == 403
    assert ToolServer.objects.get().name == "Kettle"


def test_mcp_pages_refuse_unknown_servers_and_other_methods(staff: Client) -> None:
    server = create_command()
    for path in ("", "look/", "remove/"):
        assert staff.post(f"/tools/999/{path}").status_code == 404
    assert staff.get(f"/tools/{server.pk}/look/").status_code == 405
    assert staff.get(f"/tools/{server.pk}/remove/").status_code == 405
    assert staff.get("/tools/add/").status_code == 405
    assert staff.post("/tools/").status_code == 405


def test_removed_and_switched_off(staff: Client) -> None:
    told = [{"name": "kettle__a", "tool": "a", "title": "a", "description": "", "parameters": {}}]
    server = create_command(tools=told)
    assert "kettle__a" in {tool.name for tool in tools.available(NOBODY)}
    ToolServer.objects.update(enabled=False)
    assert "kettle__a" not in {tool.name for tool in tools.available(NOBODY)}
    assert staff.post(f"/tools/{server.pk}/remove/").status_code == 302
    assert not ToolServer.objects.exists()


def test_the_page_without_any(staff: Client, browser: Client) -> None:
    assert "No shared tool servers yet." in staff.get("/tools/").content.decode()
    assert "No personal tool servers yet." in browser.get("/tools/").content.decode()
    assert "Ask an admin to add one." in browser.get("/tools/").content.decode()


def test_no_commands_where_the_settings_forbid_them(staff: Client, settings: object) -> None:
    settings.MCP_COMMANDS = False  # type: ignore[attr-defined]
    page = staff.get("/tools/").content.decode()
    assert "id_command" not in page
    answer = staff.post("/tools/add/", given(url="http://127.0.0.1:1/mcp"), follow=True)
    assert ToolServer.objects.get().transport == Transport.HTTP
    assert "The tool server is not responding" in answer.content.decode()


def pressed(html: str) -> list[str]:
    """The choices for whole groups that all of their tools have."""
    return re.findall(r'id="(all-\w+-\w+)"[^>]*aria-pressed="true"', html)


def test_the_panel_of_a_conversation_groups_them(browser: Client, alice: User) -> None:
    told = [
        {"name": "kettle__a", "tool": "a", "title": "Pour", "description": "", "parameters": {}}
    ]
    create_command(tools=told, error="The connection was lost during a call.")
    opened = browser.post("/api/v1/conversations", {}, content_type="application/json").json()
    url = f"/chat/{opened['id']}/settings/"
    page = browser.get(url).content.decode()
    assert "Offline: The connection was lost during a call." in page
    assert 'name="use-kettle__a"' in page
    saved = browser.post(f"/chat/{opened['id']}/tools/", {"use-kettle__a": "ask", "rounds": "8"})
    assert saved.status_code == 200
    shown = browser.get(f"/api/v1/conversations/{opened['id']}").json()
    assert shown["tools"]["use"] == {"kettle__a": "ask"}
    assert "tools-panel" not in saved.content.decode()
    assert 'id="tool-group-kettle" hx-swap-oob="true"' in saved.content.decode()
    assert pressed(saved.content.decode()) == ["all-kettle-ask"]

    given = {"use-kettle__a": "ask", "use-calculator": "ask", "all-kettle": "always", "rounds": "8"}
    saved = browser.post(f"/chat/{opened['id']}/tools/", given)
    assert 'id="tools-panel" hx-swap-oob="true"' in saved.content.decode()
    shown = browser.get(f"/api/v1/conversations/{opened['id']}").json()
    assert shown["tools"]["use"] == {"calculator": "ask", "kettle__a": "always"}
