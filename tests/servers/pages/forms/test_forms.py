import pytest
from django.utils import timezone

from apps.servers.models import Server, State
from apps.servers.pages.forms import ServerForm

pytestmark = pytest.mark.django_db


def given(**changes: str) -> dict[str, str]:
    return {"name": "Mine", "base_url": "http://127.0.0.1:1", "api_key": "secret"} | changes


def saved(form: ServerForm) -> Server:
    assert form.is_valid(), form.errors
    server: Server = form.save()
    return Server.objects.get(pk=server.pk)


def test_server_form_saves_stated_facts() -> None:
    stated = {"parallel": "6", "context_stated": "8192", "kv_unified": "no"}
    server = saved(ServerForm(given(**stated)))
    assert (server.base_url, server.endpoint.api_key) == ("http://127.0.0.1:1/v1", "secret")
    assert (server.parallel, server.context_stated, server.kv_unified) == (6, 8192, False)


@pytest.mark.parametrize(("choice", "value"), [("yes", True), ("no", False), ("", None)])
def test_the_cache_may_be_shared_split_or_unknown(choice: str, value: bool | None) -> None:
    server = saved(ServerForm(given(kv_unified=choice)))
    assert server.kv_unified is value
    assert ServerForm(instance=server)["kv_unified"].value() == (choice or None)


@pytest.fixture
def server() -> Server:
    server = Server(name="Mine", base_url="http://127.0.0.1:1/v1", state=State.READY)
    server.set_key("secret")
    server.checked_at = timezone.now()
    server.save()
    return server


def test_the_key_is_never_shown(server: Server) -> None:
    assert "secret" not in ServerForm(instance=server).as_p()
    wrong = ServerForm(given(base_url="ftp://x"), instance=server)
    assert "secret" not in wrong.as_p()


def test_an_empty_key_keeps_the_stored_one(server: Server) -> None:
    kept = saved(ServerForm(given(api_key="", name="Other"), instance=server))
    assert (kept.name, kept.endpoint.api_key, kept.state) == ("Other", "secret", State.READY)


def test_another_key_is_another_server(server: Server) -> None:
    changed = saved(ServerForm(given(api_key="other"), instance=server))
    assert (changed.endpoint.api_key, changed.state) == ("other", State.UNKNOWN)
    assert changed.checked_at is None


def test_another_address_is_another_server(server: Server) -> None:
    form = ServerForm(given(base_url="http://127.0.0.1:2", api_key=""), instance=server)
    moved = saved(form)
    assert (moved.state, moved.endpoint.api_key) == (State.UNKNOWN, "")  # the key was the old one's
    assert form.lost_key


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/secret", "https://127.0.0.1:1"])
def test_a_key_does_not_follow_its_address(server: Server, address: str) -> None:
    assert (
        saved(ServerForm(given(base_url=address, api_key=""), instance=server)).encrypted_key == ""
    )


def test_a_new_key_comes_with_a_new_address(server: Server) -> None:
    form = ServerForm(given(base_url="http://127.0.0.1:2", api_key="new"), instance=server)
    assert (saved(form).endpoint.api_key, form.lost_key) == ("new", False)


def test_a_key_can_be_forgotten(server: Server) -> None:
    forgotten = saved(ServerForm(given(api_key="", forget_key="on"), instance=server))
    assert forgotten.endpoint.api_key == ""
    assert "forget_key" not in ServerForm(instance=forgotten).fields
    assert "forget_key" not in ServerForm().fields


def test_a_server_of_the_settings_keeps_its_address_and_key(server: Server) -> None:
    server.from_settings = True
    server.save()
    form = ServerForm(given(base_url="http://evil", name="New", parallel="3"), instance=server)
    kept = saved(form)
    assert (kept.base_url, kept.endpoint.api_key) == ("http://127.0.0.1:1/v1", "secret")
    # Its name too: by it the settings find it again.
    assert (kept.name, kept.parallel) == ("Mine", 3)


def test_a_name_taken(server: Server) -> None:
    form = ServerForm(given())
    assert not form.is_valid()
    assert form.errors["name"] == ["A server with this name already exists."]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://x/v1",
        "file:///etc/passwd",
        "http://a@b/v1",
        "http://a\\@b",
        "javascript:x",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    form = ServerForm(given(base_url=address))
    assert not form.is_valid()
    assert "base_url" in form.errors
