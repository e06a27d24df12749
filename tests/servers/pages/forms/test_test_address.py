"""POST /servers/test/: what answers at an address, before it is added."""

import pytest
from django.test import Client

from apps.servers.models import Server
from tests.llama_process import LlamaProcess, free_port
from tests.markup import visible_text
from tests.standins import Model, Standin

pytestmark = pytest.mark.django_db(transaction=True)


def found(browser: Client, **data: str) -> str:
    answer = browser.post("/servers/test/", data)
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_tells_kind_model_slots_and_offers_the_uses(
    staff_browser: Client, llama: LlamaProcess
) -> None:
    address = llama.root_url.removeprefix("http://")
    page = found(staff_browser, base_url=address, api_key=llama.api_key)
    shown = visible_text(page)
    assert "Ready: llama-server, 1 model" in shown
    assert f"Address http://{address}/v1" in shown
    assert "Slots 4" in shown
    assert "Embeddings: not offered" in shown
    assert page.count("checked") == 2  # nobody does either
    assert "on 127.0.0.1" in page  # a name
    assert llama.api_key not in page
    assert not Server.objects.exists()


def test_a_use_that_another_server_has_is_not_taken_from_it(
    staff_browser: Client, server: Server, llama: LlamaProcess
) -> None:
    """`server` chats and generates."""
    page = found(staff_browser, base_url=llama.root_url, api_key=llama.api_key, name="Mine")
    assert "checked" not in page
    assert 'value="Mine"' in page


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("", "This server needs a key"), ("wrong", "The server rejected the key")],
)
def test_a_key_that_is_missing_or_wrong_is_said(
    staff_browser: Client, llama: LlamaProcess, key: str, sentence: str
) -> None:
    assert sentence in found(staff_browser, base_url=llama.root_url, api_key=key)


def test_no_answer_is_said_with_the_address_and_it_can_be_added_all_the_same(
    staff_browser: Client,
) -> None:
    port = free_port()
    shown = visible_text(found(staff_browser, base_url=f"localhost:{port}"))
    assert f"No answer at http://localhost:{port}/v1." in shown
    assert "Add offline server" in shown


def test_what_is_no_address_is_said(staff_browser: Client) -> None:
    assert "is not a valid address" in found(staff_browser, base_url="256.256.256.256:80")


def test_a_router_lists_its_models_and_loads_none(
    staff_browser: Client, llama: LlamaProcess
) -> None:
    models = [Model(f"model-{n}") for n in range(5)]
    with Standin("router", llama, models=models, api_key="k") as router:
        shown = visible_text(found(staff_browser, base_url=router.base_url, api_key="k"))
        assert set(router.states.values()) == {"unloaded"}
    assert "5 models" in shown
    assert "and 2 more" in shown


def test_only_staff_may_have_addresses_asked(browser: Client) -> None:
    assert browser.post("/servers/test/", {"base_url": "http://127.0.0.1:1"}).status_code == 403


def test_check_asks_a_server_again_now(
    staff_browser: Client, browser: Client, server: Server
) -> None:
    Server.objects.update(state="unreachable")
    assert browser.post(f"/servers/{server.pk}/check/").status_code == 403
    shown = staff_browser.post(f"/servers/{server.pk}/check/").content.decode()
    assert f"“{server.name}”: ready." in shown
    assert Server.objects.get().state == "ready"


def test_uses_that_are_chosen_get_the_server_that_is_added(
    staff_browser: Client, llama: LlamaProcess
) -> None:
    data = {"name": "Mine", "base_url": llama.root_url, "api_key": llama.api_key}
    answer = staff_browser.post("/servers/add/", {**data, "use": ["chat", "generation", "x"]})
    server = Server.objects.get()
    assert answer["Location"] == f"/servers/#server-{server.pk}"
    assert {default.use for default in server.defaults.all()} == {"chat", "generation"}
