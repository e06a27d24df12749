"""Which model of a server is measured."""

from typing import Any

import pytest

from apps.servers.models import Kind, Server, State
from apps.tuning.errors import SweepError
from apps.tuning.sweep import choose_model as module
from apps.tuning.sweep.choose_model import choose_model


@pytest.fixture(autouse=True)
def _not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts of the tests are as fresh as can be."""

    async def refresh(server: Server, **_: Any) -> Server:
        return server

    monkeypatch.setattr(module, "refresh_server", refresh)


def server(*models: dict[str, Any], kind: Kind = Kind.LLAMA_SERVER, **fields: Any) -> Server:
    facts = {"models": list(models), **fields.pop("facts", {})}
    known: dict[str, Any] = {"name": "Box", "kind": kind, "state": State.READY}
    return Server(stored_facts=facts, **(known | fields))


CHAT, EMBED = {"id": "chat", "aliases": ["c"]}, {"id": "vectors", "embeddings": True}
LOADED, UNLOADED = {"id": "big", "state": "loaded"}, {"id": "small", "state": "unloaded"}


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (server(CHAT), "", "chat"),
        (server(EMBED, CHAT), "", "chat"),
        (server(CHAT, {"id": "other"}), "other", "other"),
        (server(CHAT), "c", "c"),
        (server(), "anything", "anything"),
        (server(UNLOADED, LOADED, kind=Kind.ROUTER), "", "big"),
        (server(UNLOADED, LOADED, kind=Kind.LLAMA_SWAP), "big", "big"),
    ],
)
async def test_model_is_the_one_asked_for_or_the_first_that_is_loaded(
    found: Server, wanted: str, expected: str
) -> None:
    assert (await choose_model(found, wanted)).model == expected


@pytest.mark.parametrize(
    ("found", "wanted", "message"),
    [
        (server(CHAT), "gpt", "“Box” has no model “gpt”."),
        (server(EMBED), "", "“vectors” only embeds texts."),
        (server(CHAT, EMBED), "vectors", "“vectors” only embeds texts."),
        (server(UNLOADED, kind=Kind.ROUTER), "", "No model is loaded. Load a model first"),
        (server(UNLOADED, LOADED, kind=Kind.ROUTER), "small", "“small” is not loaded."),
        (server(CHAT, state=State.LOADING), "", "“Box” is not ready. Loading"),
        (
            server(CHAT, state=State.UNREACHABLE, facts={"error": "Nobody answers there."}),
            "",
            "“Box” is not ready. Nobody answers there.",
        ),
    ],
)
async def test_server_that_cannot_be_measured_is_an_error(
    found: Server, wanted: str, message: str
) -> None:
    with pytest.raises(SweepError) as refused:
        await choose_model(found, wanted)
    assert str(refused.value).startswith(message)
