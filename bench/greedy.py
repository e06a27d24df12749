"""What one member who wants everything costs the others.

A web process of its own, with a model server whose answers never end and tool servers that never
answer, serves two people.
One of them has 64 tool servers asked at once, asks 500 questions, uploads 100 large files and sends
deep JSON, all at the same time and again and again. Printed is how long a page of the other takes
beside that and alone, whether /health was answered, and the most memory of the web process.

Run: `.venv/bin/python -m bench.greedy [--pages 200]`. Nothing else should run.
"""

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from apps.embedded.processes.ports import free_port
from tests.faults.model_server import most_of

ROOT = Path(__file__).resolve().parent.parent
MOST_RATIO = 1.5
MOST_BYTES = 10**9
LOOKS, QUESTIONS, UPLOADS, DEEP = 64, 500, 100, 20
UPLOAD_BYTES = 12 * 1024 * 1024
SET_UP = """
import json
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from apps.core.models import ApiKey
from apps.chat.conversations.services import open_conversation
from apps.servers.models import DefaultServer, Server, Use
from apps.mcp.models import ToolServer

def session(user):
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return store.session_key

server = Server.objects.create(name="Silent", base_url="http://127.0.0.1:{model}/v1")
for use in Use:
    DefaultServer.objects.create(use=use, server=server)
greedy, other = (User.objects.create_user(name) for name in ("greedy", "other"))
print("SET " + json.dumps(dict(
    key=ApiKey.issue(user=greedy, name="g")[1],
    greedy=session(greedy),
    other=session(other),
    conversations=[open_conversation(owner=greedy).pk for _ in range({questions})],
    tools=[
        ToolServer.objects.create(
            name=f"T{{n}}", slug=f"t{{n}}", url="http://127.0.0.1:{tools}/mcp", owner=greedy
        ).pk
        for n in range(10)
    ],
)))
"""


@dataclass
class Found:
    """What was seen. Times in seconds."""

    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    health: Counter[int] = field(default_factory=Counter)
    greedy: dict[str, dict[str, int]] = field(default_factory=dict)
    peak_bytes: int = 0

    @property
    def ratio(self) -> float:
        return p95(self.beside) / p95(self.alone)


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


@dataclass(frozen=True)
class Site:
    """A running web process, and who may go there."""

    port: int
    process: psutil.Process
    people: dict[str, Any]


@contextmanager
def silent() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    port = free_port()
    code = (
        "import socket, time; s = socket.create_server(('127.0.0.1', %d), backlog=1024)\n"
        "while True: time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code % port])
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def writing(folder: Path) -> Iterator[int]:
    """The port of a model server that begins every answer and ends none."""
    port, log = free_port(), folder / "model.log"
    log.touch()
    most_of(log).write_text("0")
    module = [sys.executable, "-m", "tests.faults.model_server"]
    process = subprocess.Popen([*module, str(port), str(log), "4"], cwd=ROOT)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def serving(redis_url: str, folder: Path, model: int, tools: int) -> Iterator[Site]:
    """A web process with a database of its own, on the given Redis."""
    port = free_port()
    env = os.environ | {
        "WORKBENCH_DATA": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
        "REDIS_URL": redis_url,
        "WORKBENCH_MCP_OWN_PRIVATE_URLS": "true",
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
    }
    manage = [sys.executable, "manage.py"]
    web: subprocess.Popen[bytes] | None = None
    try:
        subprocess.run([*manage, "migrate", "-v0"], cwd=ROOT, env=env, check=True)
        code = SET_UP.format(model=model, tools=tools, questions=QUESTIONS)
        said = subprocess.run(
            [*manage, "shell", "-v0", "-c", code],
            cwd=ROOT, env=env, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        people = json.loads(said.partition("SET ")[2])
        web = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "workbench.asgi:application"),
                *("--port", str(port), "--loop", "uvloop", "--http", "httptools"),
                *("--lifespan", "off", "--no-access-log", "--log-level", "critical"),
                *("--timeout-graceful-shutdown", "1"),
            ],
            cwd=ROOT, env=env, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        site = Site(port, psutil.Process(web.pid), people)
        while True:
            try:
                if ask(site, "/health")[0] == 200:
                    break
            except OSError:
                assert web.poll() is None, "the web process ended"
                time.sleep(0.05)
        yield site
    finally:
        if web is not None:
            web.kill()
            web.wait()


def ask(site: Site, path: str, session: str = "") -> tuple[int, float]:
    """Status and seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": f"workbench_session={session}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.perf_counter() - began


def watch(site: Site, pages: int, found: Found, times: list[float]) -> None:
    for _ in range(pages):
        status, seconds = ask(site, "/chat/", site.people["other"])
        found.statuses[status] += 1
        times.append(seconds)
        found.health[ask(site, "/health")[0]] += 1
        found.peak_bytes = max(found.peak_bytes, site.process.memory_info().rss)
        time.sleep(0.02)


def measure(redis_url: str, pages: int) -> Found:
    """Alone first, then beside the greedy one, who is over at the same time."""
    found = Found()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wb-greedy-")))
        servers = [stack.enter_context(one) for one in (writing(folder), silent())]
        site = stack.enter_context(serving(redis_url, folder, *servers))
        watch(site, 20, Found(), [])
        watch(site, pages, found, found.alone)
        member = subprocess.Popen(
            [sys.executable, "-m", "bench.greedy", "--member", str(site.port)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert member.stdin is not None
        assert member.stdout is not None
        member.stdin.write(json.dumps(site.people) + "\n")
        member.stdin.flush()
        assert member.stdout.readline() == "begun\n"
        watch(site, pages, found, found.beside)
        said, _ = member.communicate("enough\n")
        found.greedy = json.loads(said)
    return found


# --- The greedy one, in a process of their own -------------------------------------------------


async def everything(port: int, people: dict[str, Any]) -> dict[str, Counter[int]]:
    base = f"http://127.0.0.1:{port}"
    limits = httpx2.Limits(max_connections=1000)
    patience = httpx2.Timeout(600)
    seen: dict[str, Counter[int]] = {}
    async with httpx2.AsyncClient(base_url=base, limits=limits, timeout=patience) as client:
        key = {"Authorization": f"Bearer {people['key']}"}
        client.cookies.set("workbench_session", people["greedy"])
        await client.get("/tools/")
        login = {"X-CSRFToken": client.cookies["workbench_csrf"]}
        file = b"text\n" + b"a line of some text that nobody reads\n" * (UPLOAD_BYTES // 38)

        async def again(what: str, path: str, headers: dict[str, str], **body: Any) -> None:
            while True:
                try:
                    answer = await client.post(path, headers=headers, **body)
                    seen.setdefault(what, Counter())[answer.status_code] += 1
                    wait = float(answer.headers.get("Retry-After", 1))
                except httpx2.TransportError:  # refused while it was still sending
                    wait = 1.0
                await asyncio.sleep(wait)

        def question(number: int) -> str:
            chosen = people["conversations"][number % len(people["conversations"])]
            return f"/api/v1/conversations/{chosen}/messages"

        tasks = [
            again("look", f"/tools/{people['tools'][n % 10]}/look/", login) for n in range(LOOKS)
        ]
        tasks += [
            again(
                "question",
                question(n),
                key,
                json={"content": f"Question {n}", "params": {"seed": n}},
            )
            for n in range(QUESTIONS)
        ]
        tasks += [
            again("upload", "/api/v1/datasets", key, files={"file": ("a.csv", file)})
            for _ in range(UPLOADS)
        ]
        deep = {"content": b"[" * 5_000_000}
        json_type = {"Content-Type": "application/json"}
        tasks += [
            again("deep", "/api/v1/conversations", key | json_type, **deep) for _ in range(DEEP)
        ]
        running = [asyncio.ensure_future(task) for task in tasks]
        print("begun", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--redis", default=os.environ.get("REDIS_URL", ""))
    parser.add_argument("--member", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        people = json.loads(sys.stdin.readline())
        print(json.dumps(asyncio.run(everything(options.member, people))))
        return 0
    found = measure(options.redis, options.pages)
    for name, times in (("alone", found.alone), ("beside", found.beside)):
        print(
            f"page {name}: p50 {1e3 * statistics.median(times):.1f}, p95 {1e3 * p95(times):.1f} ms"
        )
    print(f"ratio {found.ratio:.2f}, pages {dict(found.statuses)}, health {dict(found.health)}")
    print(f"peak memory {found.peak_bytes / 1e6:.0f} MB; the greedy one saw {found.greedy}")
    is_good = found.ratio <= MOST_RATIO and found.peak_bytes < MOST_BYTES
    return 0 if is_good and set(found.health) == set(found.statuses) == {200} else 1


if __name__ == "__main__":
    sys.exit(main())
