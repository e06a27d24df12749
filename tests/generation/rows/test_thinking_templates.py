"""Rows of a JSON schema from every kind of model that thinks, on a real llama-server."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async

from apps.generation.recipe.parse import parse
from apps.generation.rows.preview import generate_preview
from apps.llm.client import ChatRequest, Message
from apps.llm.thinking import plan_thinking
from apps.servers.models import Server, Use
from apps.servers.services import choose_target, refresh_server
from tests.conftest import create_server
from tests.environment import FOLDER
from tests.llama_process import LlamaProcess
from tests.llm.thinking_templates import TEMPLATES
from tests.tiny_gguf import write_tiny_gguf

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]

MAX_TOKENS = 120
ROWS = {"qwen": 100, "deepseek-r1": 4, "granite": 4}
SCHEMA = {
    "type": "object",
    "required": ["sure"],
    "properties": {"sure": {"type": "boolean"}},
    "additionalProperties": False,
}


@contextmanager
def running(name: str) -> Iterator[LlamaProcess]:
    model = write_tiny_gguf(FOLDER / f"rows-{name}.gguf", template=TEMPLATES[name])
    with LlamaProcess(model, parallel=4, context_per_slot=1024) as process:
        yield process


async def server_of(process: LlamaProcess) -> Server:
    server = await sync_to_async(create_server)(process, "Thinker", Use.GENERATION)
    return await refresh_server(server)


@pytest.fixture(scope="module", params=ROWS)
def thinker(request: pytest.FixtureRequest) -> Iterator[tuple[str, LlamaProcess]]:
    with running(request.param) as process:
        yield request.param, process


async def test_no_row_is_cut_by_thinking(thinker: tuple[str, LlamaProcess]) -> None:
    name, process = thinker
    server = await server_of(process)
    assert server.facts_of(server.model_ids[0]).thinking.thinks
    body = {"prompt": "Is it?", "schema": SCHEMA, "params": {"max_tokens": MAX_TOKENS}}
    found = await generate_preview(choose_target(server), parse(body), 3, rows=ROWS[name])
    assert [row.error for row in found] == [""] * ROWS[name]
    codes = [row.outcome.code if row.outcome else "none" for row in found]
    assert codes == [""] * ROWS[name]
    for row in found:
        assert row.outcome is not None
        assert row.outcome.output["sure"] in {True, False}
        assert 0 < row.outcome.usage.completion_tokens < MAX_TOKENS
        assert row.outcome.usage.prompt_tokens > 0


async def test_the_effort_is_low_and_each_thought_of_gpt_oss_ends_as_it_begins() -> None:
    """Without weights that know its channels, a model opens one after the other."""
    with running("gpt-oss") as process:
        server = await server_of(process)
        target = choose_target(server)
        params = dict(plan_thinking(server.facts_of(target.model).thinking).params)
        question: list[Message] = [{"role": "user", "content": "Is it?"}]
        sent = await target.client.post("/apply-template", {"messages": question, **params})
        assert "Reasoning: low" in sent["prompt"]
        request = ChatRequest(target.model, question, 150, params, json_schema(SCHEMA))
        ended = await target.client.complete(request)
    assert len(ended.reasoning) < 10


def json_schema(schema: dict[str, object]) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": "row", "schema": schema}}
