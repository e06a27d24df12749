"""Which processes there are, by what the person set; nothing is started here."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.embedded.llama_command import Llama
from apps.embedded.options import Options
from apps.embedded.processes.redis_server import RedisServer
from apps.embedded.processes.supervisor import Child
from apps.embedded.services import Parts, child_env, children

INHERITED = {"PATH": "/bin", "HOME": "/home/alice"}


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(root=tmp_path / "repository", data=tmp_path / "var")


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(
        key="k3y",
        key_file=tmp_path / "var" / "secrets" / "llama-key",
        redis=RedisServer(
            binary=Path("/bin/redis-server"), folder=tmp_path, password="pw", socket=None, port=7001
        ),
        chat=Llama(models=(Path("/m/demo.gguf"),), port=7002, context_per_slot=2048, slots=4),
        embeddings=Llama(
            models=(Path("/m/minilm.gguf"),), port=7003, context_per_slot=2048, embeddings=True
        ),
    )


def named(options: Options, parts: Parts) -> dict[str, Child]:
    return {child.name: child for child in children(options, parts, INHERITED)}


def command(child: Child) -> str:
    return " ".join(map(str, child.argv))


def test_without_settings_everything_is_ours(options: Options, parts: Parts) -> None:
    names = list(named(options, parts))

    assert names == ["redis", "chat-model", "embed-model", "web", "pumps", "worker", "beat"]


def test_nothing_is_started_that_the_person_has(options: Options, parts: Parts) -> None:
    theirs = replace(
        options,
        redis_url="redis://db",
        llm_base_url="http://gpu:8080/v1",
        embed_base_url="http://gpu:8081/v1",
    )
    none = replace(parts, redis=None, chat=None, embeddings=None)

    assert list(named(theirs, none)) == ["web", "pumps", "worker", "beat"]
    assert named(theirs, none)["web"].after == []


def test_the_children_know_each_other(options: Options, parts: Parts) -> None:
    env = child_env(options, parts, INHERITED)

    assert env["PATH"] == "/bin"
    assert env["WORKBENCH_DATA"] == str(options.data)
    assert env["REDIS_URL"] == "redis://:pw@127.0.0.1:7001/0"
    assert env["LLM_BASE_URL"] == "http://127.0.0.1:7002/v1"
    assert env["EMBED_BASE_URL"] == "http://127.0.0.1:7003/v1"
    assert env["LLM_API_KEY"] == env["EMBED_API_KEY"] == "k3y"


def test_a_chat_server_of_their_own_keeps_its_key(options: Options, parts: Parts) -> None:
    theirs = replace(options, llm_base_url="http://gpu/v1", llm_api_key="s", embed_api_key="s")
    env = child_env(
        theirs, replace(parts, chat=None), {**INHERITED, "LLM_BASE_URL": "http://gpu/v1"}
    )

    assert env["LLM_BASE_URL"] == "http://gpu/v1"
    assert env["LLM_API_KEY"] == "s"
    assert env["EMBED_API_KEY"] == "k3y", "the embedding server is still ours"


def test_an_embedding_server_of_their_own_keeps_its_key(options: Options, parts: Parts) -> None:
    theirs = replace(options, embed_base_url="http://gpu/v1", llm_api_key="s", embed_api_key="s")
    env = child_env(theirs, replace(parts, embeddings=None), INHERITED)

    assert (env["LLM_API_KEY"], env["EMBED_API_KEY"]) == ("k3y", "s")


def test_a_secret_from_a_file_does_not_win_over_ours(options: Options, parts: Parts) -> None:
    env = child_env(options, parts, {**INHERITED, "LLM_API_KEY_FILE": "/run/secrets/key"})

    assert "LLM_API_KEY_FILE" not in env


def test_the_chat_model_has_four_slots(options: Options, parts: Parts) -> None:
    chat = command(named(options, parts)["chat-model"])

    assert "--model /m/demo.gguf --alias demo --port 7002" in chat
    assert "--parallel 4" in chat
    assert "--embeddings" not in chat
    assert "k3y" not in chat, "a command line can be read by everyone on the machine"
    assert "--embeddings" in command(named(options, parts)["embed-model"])


def test_a_missing_model_is_downloaded_by_the_process_that_will_serve_it(
    options: Options, parts: Parts
) -> None:
    assert parts.chat is not None
    assert parts.embeddings is not None
    first = replace(
        parts,
        chat=replace(parts.chat, missing=("alice/models:m.gguf",)),
        embeddings=replace(parts.embeddings, missing=("all-MiniLM-L6-v2",)),
    )
    found = named(options, first)

    assert command(found["chat-model"]).endswith("apps.embedded.fetch_and_serve chat --port 7002")
    assert command(found["embed-model"]).endswith("fetch_and_serve embeddings --port 7003")


def test_the_first_page_comes_first(options: Options, parts: Parts) -> None:
    late = {name for name, child in named(options, parts).items() if child.late}

    assert late == {"chat-model", "embed-model", "pumps", "worker", "beat"}
    assert named(options, parts)["web"].after == ["redis"]


def test_what_others_use_ends_last(options: Options, parts: Parts) -> None:
    found = named(options, parts)

    for name in ("web", "pumps", "worker", "beat"):
        assert found[name].uses == ["redis", "chat-model", "embed-model"]


def test_only_worker_and_beat_are_held_to_one_thread(options: Options, parts: Parts) -> None:
    found = named(options, parts)

    assert found["worker"].env["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in found["chat-model"].env


def test_jobs_and_training_never_share_a_process(options: Options, parts: Parts) -> None:
    found = named(options, parts)

    assert command(found["pumps"]).endswith("manage.py run_pumps")
    assert "-Q default " in command(found["worker"])


def test_the_worker_outlives_its_soft_shutdown(
    options: Options, parts: Parts, settings: Any
) -> None:
    worker = named(options, parts)["worker"]

    assert worker.grace > settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT


def test_web_server_listens_on_the_chosen_host_and_port(options: Options, parts: Parts) -> None:
    web = command(named(replace(options, host="0.0.0.0", port=9000), parts)["web"])

    assert "--host 0.0.0.0 --port 9000" in web


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("workbench.lan", "http://workbench.lan:8000"),
    ],
)
def test_the_address_can_be_opened(options: Options, host: str, address: str) -> None:
    assert replace(options, host=host).address == address
    public = replace(options, host=host, public_origin="https://wb.example")
    assert public.address == "https://wb.example"
