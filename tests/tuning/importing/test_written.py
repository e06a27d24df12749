"""Which servers a pasted text holds, in each of the forms in which people keep them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tuning.errors import PlanError
from apps.tuning.importing.flag_table import shipped_table
from apps.tuning.importing.imported import import_servers
from apps.tuning.importing.written import MAX_SERVERS, WrittenServer, read_servers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("llama-server -c 1", ("-c", "1"), id="bare"),
        pytest.param("-c 1 -np 2", ("-c", "1", "-np", "2"), id="flags alone"),
        pytest.param("./build/bin/llama-server -c 1", ("-c", "1"), id="path"),
        pytest.param("llama-server \\\n  -c 1 \\\r\n  -np 2", ("-c", "1", "-np", "2"), id="lines"),
        pytest.param("nohup llama-server -c 1", ("-c", "1"), id="behind another program"),
        pytest.param("llama-server -m 'a b.gguf' # why", ("-m", "a b.gguf"), id="comment"),
        pytest.param(
            "docker run --gpus all -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server-cuda -c 1",
            ("-c", "1"),
            id="docker",
        ),
        pytest.param(
            "PATH=/x LLAMA_ARG_THREADS=4 llama-server -c 1",
            ("LLAMA_ARG_THREADS=4", "-c", "1"),
            id="environment",
        ),
    ],
)
def test_the_words_of_a_command_are_those_of_llama_server(
    text: str, words: tuple[str, ...]
) -> None:
    assert read_servers(text) == [WrittenServer("llama-server", words)]


def test_a_section_of_a_router_overrides_what_all_share() -> None:
    text = "; mine\nversion = 1\n[*]\nc = 4096\nnp = 2\n\n[a]\nc = 8192 # more\n[b]\nmodel=b.gguf\n"
    assert read_servers(text) == [
        WrittenServer("a", ("c=8192", "np=2"), from_ini=True),
        WrittenServer("b", ("c=4096", "np=2", "model=b.gguf"), from_ini=True),
    ]


def test_of_a_section_that_stands_twice_the_last_counts() -> None:
    assert read_servers("[a]\nc = 1\n[a]\nnp = 2") == [WrittenServer("a", ("np=2",), from_ini=True)]


def test_macros_of_a_model_go_before_those_of_all() -> None:
    text = """
macros: {size: 4096, run: "llama-server -c ${size}"}
models:
  a: {cmd: "${run}", macros: {size: 8192}}
  b: {cmd: "${run} -m ${MODEL_ID}.gguf"}
"""
    a, b = read_servers(text)
    assert a.words == ("-c", "8192")
    assert b.words == ("-c", "4096", "-m", "b.gguf")


def test_anchors_that_hold_no_others_are_read() -> None:
    text = (
        "d: &d {cmd: llama-server -c 1, ttl: 5}\nmodels:\n  a: *d\n  b:\n    <<: *d\n    ttl: 9\n"
    )
    assert [server.words for server in read_servers(text)] == [("-c", "1")] * 2


def test_what_is_unknown_in_a_model_does_not_disturb() -> None:
    text = "models:\n  a: {cmd: llama-server -c 1, env: 5, macros: [x], aliases: {}, x: null}"
    assert read_servers(text) == [WrittenServer("a", ("-c", "1"))]


def test_too_many_models_are_refused() -> None:
    text = "".join(f"[m{number}]\nc = 1\n" for number in range(MAX_SERVERS + 1))
    with pytest.raises(PlanError, match="65 models; at most 64"):
        read_servers(text)


@given(
    st.text(max_size=200)
    | st.text(alphabet="[]{}&*:-=\"'#$ \nmodels", max_size=200).map(lambda text: f"models:{text}")
    | st.lists(st.sampled_from(["-c", "--parallel", "-fa", "x", "-1", "9" * 30, "-ctk", "q9"])).map(
        lambda words: f"llama-server {' '.join(words)}"
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(PlanError):
        assert import_servers(text, shipped_table())
