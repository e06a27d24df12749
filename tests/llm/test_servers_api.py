import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.core.models import ApiKey
from apps.llm.models import Server
from tests.llama_process import LlamaProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def staff_api(carol: User) -> Client:
    _, token = ApiKey.issue(user=carol, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


def test_it_works(staff_api: Client, llama: LlamaProcess) -> None:
    body = {"name": "Mine", "base_url": llama.base_url, "api_key": llama.api_key}
    added = staff_api.post("/api/v1/servers", body, content_type="application/json")
    assert added.status_code == 201
    shown = added.json()
    assert (shown["kind"], shown["state"]) == ("llama-server", "ready")
    assert shown["slots"] == {
        "total": 4,
        "source": "the server's /props",
        "busy": None,
        "unified": None,
        "unified_source": "",
        "context": 4096,
        "context_source": "the server's /props",
        "pool": 4096,
        "cap": None,
        "cap_reason": "",
    }
    assert shown["models"][0]["context"] == 4096
    assert llama.api_key not in added.content.decode()
    assert staff_api.get("/api/v1/servers").json()["items"] == [shown]


def test_slots(api: Client, server: Server) -> None:
    found = api.get(f"/api/v1/servers/{server.pk}/slots").json()
    assert [slot["id"] for slot in found] == [0, 1, 2, 3]
    assert not any(slot["busy"] for slot in found)


def test_a_changed_server_is_looked_at_again(staff_api: Client, server: Server) -> None:
    answer = staff_api.patch(
        f"/api/v1/servers/{server.pk}", {"api_key": "wrong"}, content_type="application/json"
    )
    assert answer.json()["state"] == "unauthorized"


def test_bad_input_names_the_field(staff_api: Client) -> None:
    answer = staff_api.post(
        "/api/v1/servers", {"name": "x", "base_url": "ftp://x"}, content_type="application/json"
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"][-1] == "base_url"


def test_a_name_taken(staff_api: Client, server: Server) -> None:
    body = {"name": server.name, "base_url": "http://127.0.0.1:1"}
    answer = staff_api.post("/api/v1/servers", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


@pytest.mark.parametrize("method", ["patch", "delete"])
def test_only_staff_changes(api: Client, server: Server, method: str) -> None:
    answer = getattr(api, method)(
        f"/api/v1/servers/{server.pk}", {}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "staff_only")


def test_removed(staff_api: Client, server: Server) -> None:
    assert staff_api.delete(f"/api/v1/servers/{server.pk}").status_code == 204
    answer = staff_api.post(f"/api/v1/servers/{server.pk}/probe")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
