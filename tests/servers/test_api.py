from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import Client

from apps.llm.permits import Lane
from apps.runtime.redis import close_async_redis
from apps.servers.liveness import record_stall
from apps.servers.models import DefaultServer, Kind, Server
from apps.servers.services import hold_slot
from apps.work.models import Task
from apps.work.tasks import run_task
from tests.llama_process import LlamaProcess, free_port

pytestmark = pytest.mark.django_db(transaction=True)


def test_server_is_added_listed_and_its_key_hidden(staff_api: Client, llama: LlamaProcess) -> None:
    body = {"name": "Mine", "base_url": llama.base_url, "api_key": llama.api_key}
    added = staff_api.post("/api/v1/servers", body, content_type="application/json")
    assert added.status_code == 201
    shown = added.json()
    assert (shown["kind"], shown["state"]) == ("llama-server", "ready")
    assert shown["slots"] == {
        "total": 4,
        "source": "the server's /props",
        "basis": "reported",
        "busy": 0,
        "unified": None,
        "unified_source": "",
        "unified_basis": "assumed",
        "context": 4096,
        "context_source": "the server's /props",
        "context_basis": "reported",
        "pool": None,
        "cap": None,
        "cap_reason": "",
    }
    assert shown["models"][0]["context"] == 4096
    assert shown["models"][0]["bases"]["context_trained"] == "reported"
    assert llama.api_key not in added.content.decode()
    assert staff_api.get("/api/v1/servers").json()["items"] == [shown]


def test_a_server_of_the_settings_is_removed_there(staff_api: Client, server: Server) -> None:
    Server.objects.filter(pk=server.pk).update(from_settings=True)
    refused = staff_api.delete(f"/api/v1/servers/{server.pk}")
    assert (refused.status_code, refused.json()["code"]) == (409, "from_settings")
    assert Server.objects.filter(pk=server.pk).exists()
    Server.objects.filter(pk=server.pk).update(from_settings=False)
    assert staff_api.delete(f"/api/v1/servers/{server.pk}").status_code == 204


@pytest.mark.usefixtures("idle_slots")
def test_slots(api: Client, server: Server) -> None:
    found = api.get(f"/api/v1/servers/{server.pk}/slots").json()
    assert [slot["id"] for slot in found] == [0, 1, 2, 3]
    assert not any(slot["busy"] for slot in found)


@pytest.mark.usefixtures("idle_slots")
def test_busy_slots_are_those_this_workbench_uses(api: Client, server: Server) -> None:
    async def shown_beside_a_request() -> Any:
        async with hold_slot(server, lane=Lane.BATCH):
            listed = await sync_to_async(api.get)("/api/v1/servers")
        await close_async_redis()
        return listed.json()["items"]

    assert async_to_sync(shown_beside_a_request)()[0]["slots"]["busy"] == 1
    assert api.get(f"/api/v1/servers/{server.pk}").json()["slots"]["busy"] == 0


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


@pytest.mark.parametrize("address", ["http://256.256.256.256/v1", "http://[/v1", "http://a..b"])
def test_an_address_no_request_can_go_to_is_not_saved(staff_api: Client, address: str) -> None:
    body = {"name": "x", "base_url": address}
    answer = staff_api.post("/api/v1/servers", body, content_type="application/json")
    assert answer.status_code == 422
    assert not Server.objects.exists()


def test_nor_does_a_change_bring_one_in(staff_api: Client, server: Server) -> None:
    changed = {"base_url": "http://256.256.256.256/v1"}
    address = f"/api/v1/servers/{server.pk}"
    assert staff_api.patch(address, changed, content_type="application/json").status_code == 422
    assert Server.objects.get().base_url == server.base_url


def test_a_key_does_not_follow_a_changed_address(staff_api: Client, server: Server) -> None:
    path = f"/api/v1/servers/{server.pk}"
    moved = {"base_url": server.base_url.replace("/v1", "/elsewhere/v1")}
    assert staff_api.patch(path, moved, content_type="application/json").status_code == 200
    assert Server.objects.get().encrypted_key == ""
    again = {"base_url": "http://127.0.0.1:1", "api_key": "new"}
    staff_api.patch(path, again, content_type="application/json")
    assert Server.objects.get().endpoint.api_key == "new"
    staff_api.patch(path, {"base_url": "http://127.0.0.1:1/v1"}, content_type="application/json")
    assert Server.objects.get().endpoint.api_key == "new"  # the same address


@pytest.mark.parametrize("field", ["name", "base_url", "api_key"])
def test_what_the_settings_say_is_changed_there(
    staff_api: Client, server: Server, field: str
) -> None:
    Server.objects.update(from_settings=True)
    path, body = f"/api/v1/servers/{server.pk}", {field: "http://127.0.0.1:2"}
    answer = staff_api.patch(path, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "from_settings")
    answer = staff_api.delete(path)
    assert (answer.status_code, answer.json()["code"]) == (409, "from_settings")
    left = Server.objects.get()
    assert (left.name, left.base_url) == (server.name, server.base_url)
    answer = staff_api.patch(path, {"parallel": 3}, content_type="application/json")
    assert answer.status_code == 200


def test_a_stored_one_breaks_no_page(browser: Client, server: Server) -> None:
    bad = Server.objects.create(name="Bad", base_url="http://256.256.256.256/v1")
    for page in ("/chat/", "/servers/", "/servers/cards/"):
        assert browser.get(page).status_code == 200, page
    bad.refresh_from_db()
    assert (bad.state, "256.256.256.256" in bad.facts.error) == ("unreachable", True)


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


def test_server_api_shows_one_server(api: Client, server: Server) -> None:
    shown = api.get(f"/api/v1/servers/{server.pk}").json()
    assert (shown["name"], shown["state"], shown["defaults"]) == (
        "Chat",
        "unknown",
        [
            {"use": use, "model": "", "fallback": None, "fallback_model": ""}
            for use in ("chat", "generation")
        ],
    )
    assert api.get("/api/v1/servers/0").status_code == 404


def test_every_fact_has_its_source(staff_api: Client, server: Server) -> None:
    shown = staff_api.post(f"/api/v1/servers/{server.pk}/probe").json()
    (model,) = shown["models"]
    assert model["sources"]["slots"] == "the server's /props"
    assert (model["state"], model["actions"], model["embeddings"]) == ("loaded", ["warm"], False)
    assert shown["seen"] is not None
    assert shown["error"] == ""


def test_a_probe_asks_now_and_says_why_it_failed(api: Client) -> None:
    away = Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    for _ in range(2):
        shown = api.post(f"/api/v1/servers/{away.pk}/probe").json()
        assert shown["state"] == "unreachable"
        assert "Check that it is running" in shown["error"]
        assert shown["next_look"] > shown["seen"]
    assert Server.objects.get().failed_checks == 2


def test_what_a_person_states_counts_where_the_server_says_nothing(staff_api: Client) -> None:
    away = Server.objects.create(name="Away", base_url=f"http://127.0.0.1:{free_port()}/v1")
    stated = {"parallel": 6, "context": 8192, "unified": False}
    shown = staff_api.patch(
        f"/api/v1/servers/{away.pk}", stated, content_type="application/json"
    ).json()
    slots = shown["slots"]
    assert (slots["total"], slots["source"]) == (6, "set by you")
    assert (slots["context"], slots["context_source"]) == (8192, "set by you")
    assert (slots["unified"], slots["unified_source"], slots["pool"]) == (
        False,
        "set by you",
        None,
    )


def test_a_stuck_server_is_shown_as_stuck(api: Client, server: Server) -> None:
    api.post(f"/api/v1/servers/{server.pk}/probe")
    async_to_sync(record_stall_and_close)(server)
    assert api.get(f"/api/v1/servers/{server.pk}").json()["state"] == "stuck"
    assert api.get("/api/v1/servers").json()["items"][0]["state"] == "stuck"


async def record_stall_and_close(server: Server) -> None:
    await record_stall(server.pk)
    await close_async_redis()


class TestDefaults:
    def put(self, api: Client, server: Server, **body: str | int | None) -> Any:
        return api.put(
            f"/api/v1/servers/{server.pk}/defaults", body, content_type="application/json"
        )

    def test_default_is_put_with_its_model(self, staff_api: Client) -> None:
        server = Server.objects.create(name="s", base_url="http://127.0.0.1:1/v1")
        answer = self.put(staff_api, server, use="embeddings", model="e5")
        (shown,) = answer.json()["defaults"]
        assert (shown["use"], shown["model"], shown["fallback"]) == ("embeddings", "e5", None)
        self.put(staff_api, server, use="embeddings")
        assert DefaultServer.objects.get().model == ""

    def test_fallback_is_set_kept_and_cleared(self, staff_api: Client, server: Server) -> None:
        other = Server.objects.create(name="s", base_url="http://127.0.0.1:1/v1")
        answer = self.put(staff_api, server, use="chat", fallback=other.pk, fallback_model="m")
        (shown,) = (one for one in answer.json()["defaults"] if one["use"] == "chat")
        assert (shown["fallback"], shown["fallback_model"]) == (other.pk, "m")
        self.put(staff_api, server, use="chat", model="x")
        assert DefaultServer.objects.get(use="chat").fallback == other
        self.put(staff_api, server, use="chat", fallback=None)
        assert DefaultServer.objects.get(use="chat").fallback is None

    def test_the_default_is_no_fallback(self, staff_api: Client, server: Server) -> None:
        answer = self.put(staff_api, server, use="chat", fallback=server.pk)
        assert (answer.status_code, answer.json()["code"]) == (422, "fallback_refused")
        assert self.put(staff_api, server, use="chat", fallback=0).status_code == 404

    def test_bad_input(self, staff_api: Client, server: Server) -> None:
        assert self.put(staff_api, server, use="cooking").status_code == 422

    def test_only_staff(self, api: Client, server: Server) -> None:
        assert self.put(api, server, use="chat").status_code == 403


class TestActions:
    @pytest.fixture(autouse=True)
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        sent: list[Any] = []
        monkeypatch.setattr(run_task, "delay", sent.append)
        return sent

    def post(self, api: Client, server: Server, action: str, model: str = "b") -> Any:
        return api.post(
            f"/api/v1/servers/{server.pk}/models/{action}",
            {"model": model},
            content_type="application/json",
        )

    @pytest.fixture
    def swap(self, db: None) -> Server:
        models = [{"id": "b", "state": "unloaded", "actions": ["load"]}]
        return Server.objects.create(
            name="swap",
            base_url="http://127.0.0.1:1/v1",
            kind=Kind.LLAMA_SWAP,
            stored_facts={"models": models},
        )

    def test_action_is_accepted_and_sent_to_the_worker(
        self, staff_api: Client, swap: Server, sent: list[Any]
    ) -> None:
        answer = self.post(staff_api, swap, "load")
        assert (answer.status_code, answer.json()) == (202, {"model": "b", "action": "load"})
        task = Task.objects.get()
        assert sent == [task.pk]
        assert task.options == {"server": swap.pk, "model": "b", "action": "load"}

    def test_a_server_that_cannot(self, staff_api: Client, server: Server, sent: list[Any]) -> None:
        staff_api.post(f"/api/v1/servers/{server.pk}/probe")
        server.refresh_from_db()
        answer = self.post(staff_api, server, "unload", server.model_ids[0])
        assert (answer.status_code, answer.json()["code"]) == (409, "not_supported")
        assert "router mode" in answer.json()["detail"]
        assert sent == []

    def test_a_model_that_is_not_there(self, staff_api: Client, swap: Server) -> None:
        answer = self.post(staff_api, swap, "load", "x")
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_model")

    def test_bad_input(self, staff_api: Client, swap: Server) -> None:
        assert self.post(staff_api, swap, "explode").status_code == 422
        assert self.post(staff_api, swap, "load", "").status_code == 422
        assert staff_api.get(f"/api/v1/servers/{swap.pk}/models/load").status_code == 405

    def test_only_staff(self, api: Client, swap: Server, sent: list[Any]) -> None:
        assert self.post(api, swap, "load").status_code == 403
        assert sent == []
