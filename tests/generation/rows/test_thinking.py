"""Rows of a model that thinks first, on a real llama-server with such a template."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apps.generation.recipe.parse import parse
from apps.generation.recipe.spec import Spec
from apps.generation.rows.generate_row import row_tokens
from apps.generation.rows.preview import Preview, generate_preview
from apps.llm.thinking import NOT_REPORTED, ThinkingSupport
from apps.llm.thinking.request import END_TOKENS
from apps.servers.models import Server, Use
from apps.servers.services import choose_target
from tests.conftest import create_server
from tests.environment import FOLDER
from tests.llama_process import LlamaProcess
from tests.tiny_gguf import ALWAYS_THINKING_TEMPLATE, THINKING_TEMPLATE, write_tiny_gguf

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_closed_connections"),
]

SCHEMA = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 4, "maxLength": 20}},
}


def _running(name: str, template: str) -> Iterator[LlamaProcess]:
    model = write_tiny_gguf(FOLDER / f"{name}.gguf", template=template)
    with LlamaProcess(model, parallel=2, context_per_slot=4096) as process:
        yield process


@pytest.fixture(scope="module")
def thinker() -> Iterator[LlamaProcess]:
    yield from _running("thinker", THINKING_TEMPLATE)


@pytest.fixture(scope="module")
def always() -> Iterator[LlamaProcess]:
    yield from _running("always", ALWAYS_THINKING_TEMPLATE)


async def tried(server: Server, **recipe: Any) -> Preview:
    body = {"prompt": "Write a review.", "schema": SCHEMA, **recipe}
    (found,) = await generate_preview(choose_target(server), parse(body), 3, rows=1)
    assert found.outcome is not None, found.error
    return found


async def test_thinking_is_off_where_the_template_has_the_switch(thinker: LlamaProcess) -> None:
    server = await _server(thinker)
    found = await tried(server, params={"max_tokens": 120})
    assert found.outcome is not None
    assert found.outcome.code == ""
    assert found.outcome.output is not None


async def test_thinking_tokens_come_on_top_of_max_tokens(thinker: LlamaProcess) -> None:
    server = await _server(thinker)
    found = await tried(server, params={"max_tokens": 120, "thinking": 40})
    assert found.outcome is not None
    assert found.outcome.code == ""
    assert found.outcome.usage.completion_tokens > 40


async def test_where_there_is_no_switch_the_thought_ends_as_it_begins(
    always: LlamaProcess,
) -> None:
    server = await _server(always)
    found = await tried(server, params={"max_tokens": 120})
    assert found.outcome is not None
    assert found.outcome.code == ""
    assert found.outcome.usage.completion_tokens < 120


async def test_a_judge_thinks_no_more_than_the_rest(thinker: LlamaProcess) -> None:
    criterion = {"name": "good", "description": "Is it?", "max": 5}
    columns = [
        {"name": "row", "kind": "structured", "prompt": "Write.", "schema": SCHEMA},
        {"name": "judge", "kind": "judge", "criteria": [criterion], "params": {"max_tokens": 900}},
    ]
    server = await _server(thinker)
    (found,) = await generate_preview(choose_target(server), parse({"columns": columns}), 3, rows=1)
    assert found.generated is not None, found.error
    scores = json.loads(found.generated.replies[1])
    assert 1 <= scores["good"] <= 5


async def test_a_thought_without_an_end_is_the_reason(always: LlamaProcess) -> None:
    """Where nobody knows that the model thinks, as behind a proxy, and it never ends."""
    server = await _server(always)
    facts = server.stored_facts | {"models": [{"id": "default"}]}
    await Server.objects.filter(pk=server.pk).aupdate(stored_facts=facts)
    await server.arefresh_from_db()
    found = await tried(server, params={"max_tokens": 20})
    assert found.outcome is not None
    assert found.outcome.code == "thinking"
    assert "tokens thinking and wrote no answer" in found.outcome.reason


def test_the_thought_counts_where_slots_share_a_context() -> None:
    spec = Spec.read({"recipe": {"prompt": "Write."}, "seed": 1, "system": ""})
    always = ThinkingSupport(True, can_switch=False, can_disable=False)
    assert row_tokens(spec, always) - row_tokens(spec, NOT_REPORTED) == END_TOKENS


async def _server(process: LlamaProcess) -> Server:
    from asgiref.sync import sync_to_async

    from apps.servers.services import refresh_server

    server = await sync_to_async(create_server)(process, "Thinker", Use.GENERATION)
    return await refresh_server(server)
