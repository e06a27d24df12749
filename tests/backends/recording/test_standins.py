"""The stand-ins hold to what the programs really reply, as `record` wrote it down."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.llm.failures.classify import classify_failure
from tests.backends.recording.record import RECORDINGS, send
from tests.backends.recording.requests import REQUESTS
from tests.llama_process import LlamaProcess
from tests.standins import Model, Standin

KEY = "sk-standin"
EMBEDS = {"mode": "embedding", "max_input_tokens": 2048}
MODELS = [
    Model("alpha", slots=2, context=4096, info={}),
    Model("beta", slots=2, info={}),
    Model("embed", embeddings=True, slots=2, info=EMBEDS),
    Model("broken", fails=True),
]
# llama-swap's is of another age: the recording is of v0.1.5, the stand-in of its releases of 2026.
KINDS = ("router", "olla", "litellm")
NOT_HELD = {
    ("router", "props of a model"): "the stand-in has the settings of one llama.cpp for all models",
    ("router", "slots"): "as above",
    ("litellm", "server behind it gone"): "the stand-in is told that by stopping llama.cpp",
    ("olla", "prompt too long"): "its slots are those of the llama.cpp behind the stand-in",
    ("litellm", "prompt too long"): "as above",
    ("router", "prompt too long"): "as above",
}


def recorded(kind: str) -> dict[str, Any]:
    text = (Path(RECORDINGS) / f"{kind}.json").read_text(encoding="utf-8")
    return dict(json.loads(text)["replies"])


@pytest.fixture(scope="module")
def standins(llama: LlamaProcess, llama_embeddings: LlamaProcess) -> Iterator[dict[str, Standin]]:
    keys = {"router": KEY, "litellm": KEY}
    running = {
        kind: Standin(
            kind,
            llama,
            embeddings=llama_embeddings,
            models=MODELS,
            api_key=keys.get(kind, ""),
            models_at_once=1 if kind == "router" else 0,
        )
        for kind in KINDS
    }
    try:
        for standin in running.values():
            standin.start()
        yield running
    finally:
        for standin in running.values():
            standin.kill()


def fields(value: Any, path: str = "") -> set[str]:
    """The names in a decoded body, as paths."""
    if isinstance(value, dict):
        told = {name: one for name, one in value.items() if one is not None}
        names = {f"{path}.{name}" for name in told}
        return names.union(*(fields(one, f"{path}.{name}") for name, one in told.items()))
    if isinstance(value, list):
        return set().union(*(fields(one, f"{path}[]") for one in value))
    return set()


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS for name in REQUESTS[kind] if (kind, name) not in NOT_HELD],
)
def test_a_stand_in_replies_as_the_program(
    kind: str, name: str, standins: dict[str, Standin]
) -> None:
    real, (method, path, body) = recorded(kind)[name], REQUESTS[kind][name]
    key = "sk-wrong" if "wrong key" in name else KEY
    reply = send(standins[kind].root_url, key, method, path, body)
    if real["status"] >= 400:
        # What matters of an error is what it is taken for.
        assert type(classify_failure(reply["status"], reply["body"])) is type(
            classify_failure(real["status"], real["body"])
        )
    else:
        assert (reply["status"], reply["type"]) == (real["status"], real["type"])
        # It invents nothing: what it tells, the program tells too.
        invented = fields(reply["body"]) - fields(real["body"])
        assert not {name for name in invented if "model_info" not in name}


@pytest.mark.parametrize("kind", ["router", "llama-swap", "olla", "litellm"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("prompt too long", "prompt_too_long"),
        ("unknown model", "unknown_model"),
        ("broken model", "load_failed"),
        ("wrong key", "unauthorized"),
        ("server behind it gone", "backend_gone"),
    ],
)
def test_each_error_of_the_programs_is_known(kind: str, name: str, code: str) -> None:
    real = recorded(kind).get(name)
    if real is None or real["status"] == 200:  # an old llama-swap has no keys
        pytest.skip("no such reply")
    assert classify_failure(real["status"], real["body"]).code == code
