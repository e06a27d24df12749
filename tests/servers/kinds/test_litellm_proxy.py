"""The stand-in for LiteLLM held against the real proxy, where there is one.

It takes 700 MB and a minute to start, so it is no part of the project: install it into an
environment of its own (`pip install 'litellm[proxy]<1.109'`) and name its command in
WORKBENCH_LITELLM.
"""

import os
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from apps.llm import errors
from apps.llm.client import ChatRequest, Client
from apps.llm.endpoint import Endpoint
from apps.servers.models import Kind, State
from apps.servers.probing.discovery import probe
from tests.llama_process import LlamaProcess, free_port

COMMAND = os.environ.get("WORKBENCH_LITELLM", "")
KEY = "sk-" + "x7Kq9" * 6  # it refuses to start with a weak one
STARTS_WITHIN = 170.0

pytestmark = [
    pytest.mark.skipif(not COMMAND, reason="WORKBENCH_LITELLM names no LiteLLM proxy"),
    pytest.mark.timeout(240),
]

CONFIG = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: {base_url}, api_key: {key}}}
  - model_name: gone
    litellm_params: {{model: openai/m, api_base: http://127.0.0.1:9/v1, api_key: x}}
litellm_settings: {{num_retries: 0}}
general_settings: {{master_key: {master}}}
"""


@pytest.fixture(scope="module")
def proxy(llama: LlamaProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("litellm")
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(base_url=llama.base_url, key=llama.api_key, master=KEY))
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [COMMAND, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).close()
            break
        except OSError:
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.5)
    yield f"http://127.0.0.1:{port}/v1"
    process.terminate()
    process.wait()


@pytest.fixture
async def client(proxy: str) -> AsyncIterator[Client]:
    client = Client(Endpoint(proxy, KEY))
    yield client
    await client.aclose()


def question(model: str = "m", text: str = "Hello") -> ChatRequest:
    return ChatRequest(model, [{"role": "user", "content": text}], 5)


async def test_it_is_known_as_what_it_is(client: Client) -> None:
    facts = await probe(client)
    assert (facts.state, facts.kind, facts.slots) == (State.READY, Kind.LITELLM, None)
    assert [model.id for model in facts.models] == ["m", "gone"]


async def test_a_wrong_key(proxy: str) -> None:
    client = Client(Endpoint(proxy, "sk-wrong"))
    assert (await probe(client)).state == State.UNAUTHORIZED
    with pytest.raises(errors.Unauthorized):
        await client.complete(question())
    await client.aclose()


async def test_an_answer_is_complete(client: Client) -> None:
    answer = await client.complete(question())
    assert answer.finish_reason == "length"
    assert answer.usage.completion_tokens == 5


@pytest.mark.parametrize(
    ("model", "text", "kind", "words"),
    [
        ("m", "x" * 5000, errors.PromptTooLong, "this server's slots hold 4,096"),
        ("unheard of", "x", errors.UnknownModel, "does not know this model"),
        ("gone", "x", errors.BackendGone, "the model server behind it does not"),
    ],
)
async def test_its_errors(
    client: Client, model: str, text: str, kind: type[errors.LLMError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        await client.complete(question(model, text))
