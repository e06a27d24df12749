"""GET /v1/models and /props, with the fields of each kind and with nonsense in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.servers.facts.server_facts import ModelFacts
from apps.servers.kinds import llama_swap, props, router
from apps.servers.kinds.listing import items_of, model_of, number

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("listing", [None, [], "x", {}, {"data": None}, {"data": [1, {"id": 2}]}])
def test_items_of_nonsense_are_none(listing: Any) -> None:
    assert items_of(listing) == []


@given(json_values)
def test_items_of_any_json_have_an_id(listing: Any) -> None:
    assert all(isinstance(item["id"], str) for item in items_of({"data": [listing]}))


@pytest.mark.parametrize(
    ("value", "expected"), [(8, 8), (0, None), (-1, None), (True, None), ("8", None), (None, None)]
)
def test_number_is_positive_and_whole(value: Any, expected: int | None) -> None:
    assert number(value) == expected


def test_model_of_llama_server() -> None:
    model = model_of(
        {
            "id": "qwen.gguf",
            "aliases": ["qwen", "qwen.gguf", 7],
            "meta": {"n_ctx": 8192, "n_ctx_train": 32768, "n_params": 7, "size": 9},
        }
    )
    assert (model.context, model.context_trained) == (8192, 32768)
    assert model.aliases == ["qwen"]
    assert model.weights == [7, 9]


@pytest.mark.parametrize(
    "field", ["context_length", "max_model_len", "max_context_length", "context_window"]
)
def test_model_of_others_names_its_context(field: str) -> None:
    assert model_of({"id": "m", field: 4096}).context == 4096


def test_model_of_reports_modalities() -> None:
    model = model_of({"id": "m", "architecture": {"input_modalities": ["text", "image"]}})
    assert (model.vision, model.audio) == (True, False)


@pytest.mark.parametrize(
    ("template", "thinks", "switch", "off"),
    [
        ("{% if enable_thinking %}<think>{% endif %}", True, True, True),
        ("{{ reasoning_effort }}", True, True, False),
        ("{%- elif thinking %}between <think></think>{% endif %}", True, True, True),
        ("{%- if not thinking is defined -%}<think>", True, True, True),
        ('<|channel|>{% if message.thinking %}{% if "thinking" in message %}', True, False, False),
        ("<think>", True, False, False),
        ("{{ messages }}", False, False, False),
    ],
)
def test_props_tell_if_a_template_thinks(
    template: str, thinks: bool, switch: bool, off: bool
) -> None:
    model = ModelFacts("m")
    props.learn(model, {"chat_template": template}, "/props")
    assert (model.reasoning, model.thinking_switch, model.thinking_off) == (thinks, switch, off)


def test_props_of_a_model() -> None:
    model = ModelFacts("m")
    reply = {
        "total_slots": 4,
        "default_generation_settings": {"n_ctx": 4096},
        "modalities": {"vision": True, "audio": "perhaps"},
        "chat_template_caps": {"supports_tools": True, "supports_x": "yes"},
    }
    props.learn(model, reply, "/props")
    assert (model.slots, model.context) == (4, 4096)
    assert (model.vision, model.audio) == (True, None)
    assert model.abilities == {"tools": True}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("loaded", ["unload", "warm"]),
        ("sleeping", ["unload", "warm"]),
        ("loading", ["unload"]),
        ("unloaded", ["load"]),
        ("failed", ["load"]),
        ("downloading", []),
    ],
)
def test_router_actions_by_state(state: str, expected: list[str]) -> None:
    assert router.actions(state) == expected


def test_paths_quote_the_name_of_a_model() -> None:
    assert router.slots_path("a b/c&d") == "/slots?model=a%20b%2Fc%26d&autoload=false"
    assert llama_swap.upstream("org/a b", "/props") == "/upstream/org/a%20b/props"
    assert llama_swap.unload_path("a?b") == "/api/models/unload/a%3Fb"
