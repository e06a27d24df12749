"""Each command of the app's services, run: on the Dockerfile's tree, a Redis and a PostgreSQL.

A container's own boundary (user, read-only root, networks) is all that is missing here.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from celery import Celery
from django.conf import settings

from apps.embedded.processes.redis_server import find_binary
from tests.deploy import compose
from tests.deploy.image import Image, default_command
from tests.llama_process import free_port
from tests.waiting import wait_until

LOOPBACK = "127.0.0.1"
STARTS_WITHIN = 180.0  # seconds, on a busy machine
ENDS_WITHIN = 60.0  # seconds, there; an engine kills it after ten where the file says no other


@dataclass(frozen=True)
class Answer:
    status: int
    headers: HTTPMessage
    text: str


@dataclass(frozen=True)
class Site:
    """What Compose would have made of the file, short of the containers."""

    image: Image
    env: dict[str, str]
    web_port: int

    def command(self, name: str) -> list[str]:
        """As in the file, but for the port and the folder that is not ours to write to."""
        words: list[str] = compose.service(name)["command"]
        here = {
            "--host=0.0.0.0": f"--host={LOOPBACK}",
            "--port=8000": f"--port={self.web_port}",
            "--schedule=/tmp/celerybeat-schedule": f"--schedule={self.image.root}/tmp/schedule",
        }
        return [here.get(word, word) for word in words]

    def log(self, name: str) -> Path:
        return self.image.root / f"{name}.log"

    @contextmanager
    def running(
        self, name: str, *, workers: int = 2, **env: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Runs the service; at the end it must stop by itself, as it is asked to."""
        service = compose.service(name)
        command = [
            word.replace("--workers=2", f"--workers={workers}") for word in self.command(name)
        ]
        process = self.image.start(command, self.env | env, self.log(name))
        try:
            yield process
            assert process.poll() is None, self.log(name).read_text()[-4000:]
            process.send_signal(signal.Signals[service.get("stop_signal", "SIGTERM")])
            grace = int(service.get("stop_grace_period", "10s").removesuffix("s"))
            process.wait(timeout=max(grace, ENDS_WITHIN))
        finally:
            with suppress(ProcessLookupError):  # and those it started, had it not ended them
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def healthy(self, name: str) -> bool:
        """Its health check, as the engine would run it inside the container."""
        check = compose.service(name)["healthcheck"]
        kind, *command = (word.replace("8000", str(self.web_port)) for word in check["test"])
        if kind == "CMD-SHELL":
            command = ["sh", "-c", *command]
        # The engine sets HOSTNAME; Celery asks the system, which says the same there.
        process = self.image.start(
            command, self.env | {"HOSTNAME": socket.gethostname()}, self.log(f"{name}-health")
        )
        try:
            return process.wait(timeout=int(check["timeout"].removesuffix("s"))) == 0
        except subprocess.TimeoutExpired:  # counts as not healthy, and is ended, at the engine too
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False

    def wait_until_healthy(self, name: str, process: subprocess.Popen[bytes]) -> None:
        wait_until(lambda: process.poll() is not None or self.healthy(name), within=STARTS_WITHIN)
        assert process.poll() is None, self.log(name).read_text()[-4000:]

    def get(self, path: str) -> Answer:
        """Follows no redirect."""
        return self._ask("GET", path, {})

    def post(self, path: str, csrf_token: str) -> Answer:
        """An empty form, as a browser sends it."""
        cookie = f"workbench_csrf={csrf_token}"
        return self._ask("POST", path, {"Cookie": cookie, "X-CSRFToken": csrf_token})

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> Answer:
        with closing(HTTPConnection(LOOPBACK, self.web_port)) as connection:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """With the configuration of the file. Yields host and port."""
    config = compose.load(compose.FILLED_IN)["configs"]["redis"]["content"]
    port = free_port()
    config = config.replace("bind * -::*", f"bind {LOOPBACK}").replace("dir /data", f"dir {folder}")
    (folder / "redis.conf").write_text(f"{config}\nport {port}\n")
    process = subprocess.Popen(
        [str(find_binary()), str(folder / "redis.conf")],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield f"{LOOPBACK}:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def postgres_server() -> Iterator[str]:
    """With the command of the file. Yields host and port."""
    service = compose.service("postgres")
    program, *flags = service["command"]
    name = service["environment"]["POSTGRES_USER"]
    assert program == "postgres"
    # PostgreSQL refuses to run as root, and cannot enter pytest's own folder as anybody else.
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if user:
        shutil.chown(folder, user)
    (folder / "password").write_text(service["environment"]["POSTGRES_PASSWORD"])
    (folder / "password").chmod(0o644)
    port = free_port()
    process = None
    try:
        subprocess.run(
            [
                *(postgres_program("initdb"), "-D", folder / "data", "-U", name, "-A", "md5"),
                f"--pwfile={folder / 'password'}",
            ],
            user=user,
            check=True,
            capture_output=True,
        )
        process = subprocess.Popen(
            [
                *(postgres_program("postgres"), "-D", folder / "data", *flags),
                *("-p", str(port), "-h", LOOPBACK, "-k", folder),
            ],
            user=user,
            stderr=subprocess.DEVNULL,
        )
        address = f"host={LOOPBACK} port={port} user={name} dbname=postgres password="
        address += service["environment"]["POSTGRES_PASSWORD"]
        wait_until(lambda: connects(address), within=STARTS_WITHIN)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {service['environment']['POSTGRES_DB']}")
        yield f"{LOOPBACK}:{port}"
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)  # fast shutdown
            process.wait(timeout=60)
        shutil.rmtree(folder)


def connects(address: str) -> bool:
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True


def postgres_program(name: str) -> str | None:
    debians = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # not on the PATH
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, debians)]))


def why_no_postgres() -> str | None:
    if not postgres_program("postgres") or not postgres_program("initdb"):
        return "no PostgreSQL here: initdb and postgres are neither on the PATH nor from Debian"
    if os.getuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


def celery_client(broker: str) -> Celery:
    """Ours, but for the broker; closes with its `with` block."""
    client = Celery("tests", broker=broker, set_as_current=False)
    client.conf.task_default_queue = settings.CELERY_TASK_DEFAULT_QUEUE
    return client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Migrated."""
    root = tmp_path_factory.mktemp("image")
    (root / "data").mkdir()
    env = dict(compose.service("web")["environment"])
    with ExitStack() as servers:
        redis = servers.enter_context(redis_server(root))
        env["REDIS_URL"] = env["REDIS_URL"].replace("redis:6379", redis)
        if why_no_postgres():
            env["DATABASE_URL"] = f"sqlite:///{root}/data/workbench.sqlite3"
        else:
            postgres = servers.enter_context(postgres_server())
            env["DATABASE_URL"] = env["DATABASE_URL"].replace("postgres:5432", postgres)
        env["WORKBENCH_DATA"] = f"{root}/data"
        for name in ("LLM_BASE_URL", "EMBED_BASE_URL"):
            env[name] = f"http://{LOOPBACK}:{free_port()}/v1"  # a model server that is down
        site = Site(Image.build(root), env, free_port())
        site.image.run(site.command("migrate"), site.env)
        yield site


def test_the_database_is_the_one_of_the_file(site: Site) -> None:
    if reason := why_no_postgres():
        pytest.skip(f"the tests below ran on SQLite: {reason}")
    with psycopg.connect(site.env["DATABASE_URL"]) as connection:
        [most] = connection.execute("SHOW max_connections").fetchone() or [0]
    assert int(most) == 200


def test_migrate_may_run_at_every_start(site: Site) -> None:
    done = site.image.run(site.command("migrate"), site.env)
    assert "No migrations to apply" in done.stdout
    assert site.env["LLM_BASE_URL"] in done.stdout


def test_web_serves_and_lets_the_first_person_in(site: Site) -> None:
    # As in `docker compose run --rm web manage.py login_link`.
    link = site.image.run(["manage.py", "login_link"], site.env).stdout.split()[-1]
    assert link.startswith("http://127.0.0.1:8000/login/link/")  # as published
    with site.running("web") as process:
        site.wait_until_healthy("web", process)
        page = site.get("/login/")
        assert page.status == 200
        sheet = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert "text/css" in site.get(sheet).headers["Content-Type"]
        landing = site.get(urlsplit(link).path)
        token = next(iter(SimpleCookie(landing.headers["Set-Cookie"]).values())).value
        answer = site.post(urlsplit(link).path, token)
        assert (answer.status, answer.headers["Location"]) == (302, "/")
        cookies = answer.headers.get_all("Set-Cookie", [])
        assert any(cookie.startswith("workbench_session=") for cookie in cookies)


def test_web_is_healthy_behind_https_too(site: Site) -> None:
    with site.running("web", workers=1, WORKBENCH_HTTPS="true") as process:
        site.wait_until_healthy("web", process)
        assert site.get("/login/").headers["Location"].startswith("https://")


def test_worker_answers_does_what_beat_asks_and_stops(site: Site) -> None:
    asked = {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    name = f"celery@{socket.gethostname()}"
    with site.running("worker") as process, celery_client(site.env["REDIS_URL"]) as celery:
        # Before that no check is worth its Python, which takes as long to start as the worker.
        wait_until(
            lambda: process.poll() is not None or " ready." in site.log("worker").read_text()
        )
        site.wait_until_healthy("worker", process)
        queues = celery.control.inspect([name], timeout=60).active_queues() or {}
        assert {queue["name"] for queue in queues[name]} == {"default"}
        for task in asked:
            celery.send_task(task)
        done = re.compile(r"Task ([\w.]+)\[.+\] succeeded|unregistered task of type '(.+)'")
        wait_until(
            lambda: len(done.findall(site.log("worker").read_text())) >= len(asked),
            within=STARTS_WITHIN,
        )
    assert {task for task, _ in done.findall(site.log("worker").read_text())} == asked


def test_pumps_are_healthy_and_stop(site: Site) -> None:
    with site.running("pumps") as process:
        site.wait_until_healthy("pumps", process)
    assert not site.healthy("pumps")  # it has signed off


def test_beat_runs(site: Site) -> None:
    with site.running("beat") as process:
        wait_until(lambda: list((site.image.root / "tmp").glob("schedule*")), within=STARTS_WITHIN)
        assert process.poll() is None


def test_the_image_without_compose(site: Site) -> None:
    """The Dockerfile's own command: the same program, but for the number of workers."""
    words = compose.service("web")["command"]
    assert default_command()[:2] == words[:2]
    assert set(default_command()) <= set(words)
