"""The standing cast: alice owns, bob may not see it, carol is staff. All else is real."""

import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.management import create_contenttypes
from django.db import close_old_connections, connection
from django.db.models.signals import post_migrate
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import Client, client
from django.test.client import AsyncClientHandler
from pytest_django import DjangoDbBlocker, Settings

from apps.core.models import ApiKey
from apps.embedded.processes.redis_server import find_binary
from apps.llm.client import close_clients
from apps.runtime.handler import SingleThreadHandler
from apps.runtime.redis import close_async_redis
from apps.servers.models import DefaultServer, Server, State, Use
from apps.servers.targets import forget_defaults
from tests.environment import FOLDER, REDIS_SOCKET
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import write_tiny_gguf
from tests.waiting import be_patient, wait_until

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

SLOTS = 4
NOBODY = 0  # no user's primary key: who sees what everybody sees


class Handler(SingleThreadHandler, AsyncClientHandler):
    """Requests of tests go the way of real ones, in a thread of their own that ends with them."""

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        with _own_connections():
            return super().get_response(request)

    def before(self, *arguments: Any) -> tuple[int, HttpResponseBase | None]:
        with _own_connections():
            return super().before(*arguments)

    def failed(self, *arguments: Any) -> HttpResponseBase:
        with _own_connections():
            return super().failed(*arguments)

    def after(self, *arguments: Any) -> HttpResponseBase:
        with _own_connections():
            return super().after(*arguments)


@contextmanager
def _own_connections() -> Iterator[None]:
    try:
        yield
    finally:
        if threading.current_thread() is not threading.main_thread():
            close_old_connections()


client.AsyncClientHandler = Handler  # type: ignore[misc]

# Each group of journeys runs in one process, on one stack. A file belongs to the first that fits.
JOURNEYS = (
    "tests/journeys/every_page/",
    "tests/journeys/chat/",
    "tests/journeys/",
    "tests/browser/",
)
# They take longest, 10 to 80 s of CPU each. Begun first, they do not keep one process busy when the
# others have ended.
FIRST = (
    *JOURNEYS,
    "tests/embedded/test_up.py",
    "tests/deploy/test_services.py",
    "tests/backends/test_checks.py",
    "tests/upgrade/test_upgrade.py",
    "tests/tuning/doctor/real/",
    "tests/gateway/batches/",
    "tests/embedded/test_up_download.py",
    "tests/classifiers/evaluation/test_evaluate_run.py",
    "tests/faults/",
    "tests/batch/",
    "tests/mcp/",
    "tests/chat/tools/test_mcp.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        found = (place for place, path in enumerate(FIRST) if item.nodeid.startswith(path))
        return next(found, len(FIRST))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling":
    """`-n 3`: each process takes file after file, and has a Redis, a database and models."""
    from xdist.scheduler import LoadFileScheduling

    class InOrder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = next((group for group in JOURNEYS if nodeid.startswith(group)), None)
            return group or str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return InOrder(config, log)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Django fills two tables that nothing of ours reads, and after each flush once more.

    That was nineteen twentieths of what a test cost that commits.
    """
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    yield
    if connection.vendor == "postgresql":  # drops no database that a thread is still connected to
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(scope="session", autouse=True)
def _fast_password_hash(django_test_environment: None) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def _patience() -> None:
    """What works answers in time, however busy this machine is. Tests of a limit set their own."""
    be_patient()


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def carol(db: None) -> User:
    return User.objects.create_user("carol", is_staff=True)


@pytest.fixture
def browser(alice: User) -> Client:
    """alice, logged in."""
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def bobs_browser(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def api(alice: User) -> Client:
    """alice's program, with her key."""
    _, token = ApiKey.issue(user=alice, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def bobs_api(bob: User) -> Client:
    _, token = ApiKey.issue(user=bob, name="tests")
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture(scope="session", autouse=True)
def redis_server() -> Iterator[None]:
    """A real Redis behind a unix socket, without a password and without persistence."""
    process = subprocess.Popen(
        [
            find_binary(),
            "--port",
            "0",
            "--unixsocket",
            str(REDIS_SOCKET),
            "--save",
            "",
            "--loglevel",
            "warning",
        ],
        cwd=FOLDER,
    )

    def answers() -> bool:
        assert process.poll() is None, "redis-server failed to start"
        try:
            return bool(redis.Redis(unix_socket_path=str(REDIS_SOCKET)).ping())
        except redis.exceptions.ConnectionError:
            return False

    wait_until(answers)
    yield
    process.terminate()
    process.wait()


@pytest.fixture(scope="session")
def _redis_client(redis_server: None) -> Iterator[redis.Redis]:
    with redis.Redis(unix_socket_path=str(REDIS_SOCKET)) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_known_defaults() -> None:
    """Those of the test before are gone, without a signal."""
    forget_defaults()


@pytest.fixture(autouse=True)
def _empty_redis(_redis_client: redis.Redis) -> Iterator[None]:
    yield
    _redis_client.flushall()


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    return write_tiny_gguf(FOLDER / "tiny.gguf")


@pytest.fixture(scope="session")
def llama(tiny_model: Path) -> Iterator[LlamaProcess]:
    """A real llama-server with four slots. It writes nonsense, as fast as a real one."""
    with LlamaProcess(tiny_model, "--metrics", parallel=SLOTS, context_per_slot=4096) as process:
        yield process


@pytest.fixture(scope="session")
def saving_llama(tiny_model: Path) -> Iterator[LlamaProcess]:
    """A real llama-server with two slots, which saves slots into its folder `slots`."""
    process = LlamaProcess(tiny_model, context_per_slot=4096)
    folder = process.folder / "slots"
    folder.mkdir()
    process.command += ["--slot-save-path", str(folder)]
    with process:
        yield process


@pytest.fixture(scope="session")
def llama_embeddings() -> Iterator[LlamaProcess]:
    """A real embedding server; its vectors mean little, but equal texts get equal ones."""
    model = write_tiny_gguf(FOLDER / "tiny-embeddings.gguf", embeddings=True)
    with LlamaProcess(model, parallel=2, embeddings=True) as process:
        yield process


def create_server(process: LlamaProcess, name: str, *uses: Use) -> Server:
    server = Server(name=name, base_url=process.base_url, state=State.UNKNOWN)
    server.set_key(process.api_key)
    server.save()
    for use in uses:
        DefaultServer.objects.create(use=use, server=server)
    return server


@pytest.fixture
def server(db: None, llama: LlamaProcess) -> Server:
    """The chat server in the database, default for chat and generation."""
    return create_server(llama, "Chat", Use.CHAT, Use.GENERATION)


@pytest.fixture
def embedding_server(db: None, llama_embeddings: LlamaProcess) -> Server:
    return create_server(llama_embeddings, "Embeddings", Use.EMBEDDINGS)


@pytest.fixture
def slow_llama(llama: LlamaProcess) -> Iterator[None]:
    """For tests of answers that are still being written, however late the test comes to them."""
    with llama.slowed():
        yield


@pytest.fixture
def idle_slots(llama: LlamaProcess) -> None:
    """For tests that look at them: those before it share the server."""
    llama.wait_until_idle()


@pytest.fixture
def nobody_stays(settings: Settings) -> None:
    """People are gone as soon as their answer is there, but where a test says otherwise."""
    settings.IDLE_AFTER_CHAT_SECONDS = 0


@pytest.fixture
async def loop_closed() -> AsyncIterator[None]:
    """What a loop of ours does last."""
    yield
    await close_clients()
    await close_async_redis()
