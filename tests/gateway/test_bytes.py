"""What goes through the gateway is what was sent, both ways, byte by byte."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from apps.servers.facts.server_facts import ModelFacts, ServerFacts
from apps.servers.models import Server, State

pytestmark = pytest.mark.django_db(transaction=True)
BODY = '{"model" :"odd",  "top_k":1.0, "x_new":{"b":"\\u00e9é"}, "model_options":[ 1 ]}'.encode()
ANSWER = (
    b'{ "choices":[],"n":1.50, "\\u0061":"b" ,"usage":{"prompt_tokens":7,"completion_tokens":2}}'
)
EVENTS = b'data: {"a":1.0}\n\n: odd comment\ndata:[DONE]\n\n'


class Recorder(BaseHTTPRequestHandler):
    """Answers as it was told, and keeps what it was asked."""

    seen: list[tuple[str, dict[str, str], bytes]]
    status, kind, answer = 200, "application/json", ANSWER

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        type(self).seen.append((self.path, headers, body))
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("X-Server", "yes")
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[type[Recorder]]:
    class Own(Recorder):
        seen = []

    http = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    Own.answer = ANSWER
    Own.port = http.server_port  # type: ignore[attr-defined]
    yield Own
    http.shutdown()
    http.server_close()


@pytest.fixture
async def odd(db: None, recorder: type[Recorder]) -> Server:
    facts = ServerFacts(models=[ModelFacts("odd", aliases=["other"], state="loaded")])
    server = Server(
        name="Odd",
        base_url=f"http://127.0.0.1:{recorder.port}/v1",  # type: ignore[attr-defined]
        state=State.READY,
        checked_at=timezone.now(),
        stored_facts=facts.to_json(),
    )
    server.set_key("theirs")
    await sync_to_async(server.save)()
    return server


async def ask(program: httpx2.AsyncClient, path: str, body: bytes) -> httpx2.Response:
    headers = {"X-Own": "1", "Cookie": "sessionid=secret", "User-Agent": "aider/0.9"}
    return await program.post(path, content=body, headers=headers)


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/systemone"])
async def test_bodies_pass_untouched(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder], route: str
) -> None:
    answer = await ask(program, route, BODY)
    assert answer.content == ANSWER
    assert answer.headers["x-server"] == "yes"
    assert "set-cookie" not in answer.headers
    path, headers, body = recorder.seen[0]
    assert (path, body) == (route, BODY)
    assert headers["authorization"] == "Bearer theirs"
    assert (headers["x-own"], headers["user-agent"]) == ("1", "aider/0.9")
    assert "cookie" not in headers


async def test_events_pass_untouched(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder]
) -> None:
    recorder.kind, recorder.answer = "text/event-stream", EVENTS
    answer = await ask(program, "/v1/completions", b'{"model":"odd","stream":true}')
    assert (answer.content, answer.headers["content-type"]) == (EVENTS, "text/event-stream")


async def test_an_alias_becomes_the_name_at_the_server(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder]
) -> None:
    await ask(program, "/infill", BODY.replace(b'"odd"', b'"Odd/odd"'))
    assert [path for path, _, _ in recorder.seen] == ["/infill"]
    assert b'"model": "odd"' in recorder.seen[0][2]


async def test_a_refusal_of_the_server_comes_as_it_is(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder]
) -> None:
    recorder.status, recorder.answer = 422, b'{"error" :"its own words"}'
    answer = await ask(program, "/v1/chat/completions", BODY)
    assert (answer.status_code, answer.content) == (422, b'{"error" :"its own words"}')


async def test_a_refused_key_of_the_workbench_is_not_the_programs_fault(
    program: httpx2.AsyncClient, odd: Server, recorder: type[Recorder]
) -> None:
    recorder.status, recorder.answer = 401, b'{"error":{"message":"Invalid API Key"}}'
    answer = await ask(program, "/v1/chat/completions", BODY)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_anthropics_clients_get_errors_in_their_shape(
    program: httpx2.AsyncClient, odd: Server, token: str
) -> None:
    del program.headers["authorization"]
    program.headers["x-api-key"] = token
    answer = await program.post("/v1/messages", json={"model": "claude"})
    assert answer.status_code == 404
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "not_found_error"


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", "bad_json"), (b"[]", "bad_json"), (b"[" * 50_000, "too_deep"), (b"\xff", "bad_json")],
)
async def test_bodies_that_cannot_be_read(
    program: httpx2.AsyncClient, odd: Server, body: bytes, code: str
) -> None:
    answer = await ask(program, "/v1/chat/completions", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_other_addresses(program: httpx2.AsyncClient, odd: Server) -> None:
    assert (await program.get("/v1/chat/completions")).status_code == 405
    assert (await program.get("/v1/nothing")).json()["error"]["code"] == "unknown_url"
    assert (await program.get("/settings/")).content == b"Django"
    lane = {"X-Workbench-Lane": "first"}
    answer = await program.post("/v1/completions", content=BODY, headers=lane)
    assert "person, agent, batch, idle" in answer.json()["error"]["message"]
