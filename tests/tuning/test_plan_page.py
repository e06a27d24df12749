"""GET and POST /servers/plan/"""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.tuning.planner.tiny_shapes import SHAPES, write_shape

pytestmark = pytest.mark.django_db

TYPED = {"layers": 28, "kv_heads": 4, "key_length": 128, "weights": 4.4, "trained": 32_768}
CHOSEN = {"hardware": "RTX 4090", "gpus": 1, "use": "chat", "cache_type": ""}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    return write_shape(path, SHAPES["GQA"]).read_bytes()


def post(browser: Client, *, status: int = 200, htmx: bool = True, **fields: Any) -> str:
    headers = {"HX-Request": "true"} if htmx else {}
    answer = browser.post("/servers/plan/", CHOSEN | fields, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_servers_page_leads_to_an_empty_form(browser: Client) -> None:
    page = browser.get("/servers/plan/").content.decode()
    assert "<h1>Plan a server</h1>" in page
    assert "plan-memory" not in page
    assert "No plan yet" in page


def test_typed_figures_give_the_published_kv_cache(browser: Client) -> None:
    text = post(browser, slots=1, context=8192, **TYPED)
    assert "448.0 MiB" in text
    assert "1 slot of 8,192 tokens, f16" in text
    assert "not reported" in text  # the compute buffers: their figures were not typed
    assert text.lstrip().startswith("<div")


def test_the_beginning_of_a_file_gives_its_plan(browser: Client, model: bytes) -> None:
    beginning = model[: model.index(b"tokenizer.ggml.tokens") + 50]
    upload = SimpleUploadedFile("My model.gguf", beginning)
    text = post(browser, file=upload, file_bytes=5 * 1024**3, use="mix")
    assert "5.00 GiB" in text
    assert "--alias My-model" in text
    assert "KV heads 2" in text


def test_an_admin_names_a_file_of_the_machine(
    client: Client, carol: User, model: bytes, tmp_path: Path
) -> None:
    client.force_login(carol)
    path = tmp_path / "Qwen.gguf"
    path.write_bytes(model)
    text = post(client, model=str(path))
    assert f"--model {path}" in text
    assert "KV heads 2" in text
    assert "cannot be read: No such file" in post(client, status=422, model=f"{path}x")
    assert "is no file." in post(client, status=422, model=str(tmp_path))


def test_others_cannot_name_files_of_the_machine(
    browser: Client, model: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "Qwen.gguf"
    path.write_bytes(model)
    assert "Or a model by name" not in browser.get("/servers/plan/").content.decode()
    assert "Choose a model file" in post(browser, status=422, model=str(path))


def test_without_scripts_the_whole_page_has_the_plan(browser: Client) -> None:
    page = post(browser, htmx=False, **TYPED)
    assert "<h1>Plan a server</h1>" in page
    assert "plan-memory" in page


def test_a_model_that_does_not_fit_shows_where_the_memory_ends(browser: Client) -> None:
    text = post(browser, **TYPED | {"weights": 40})
    assert "Does not fit" in text
    assert 'class="memory-limit"' in text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Choose a model file, or enter all of its figures."),
        (TYPED | {"hardware": ""}, "Enter the memory of the GPU."),
        (TYPED | {"hardware": "RTX 1"}, "Hardware: "),
        (TYPED | {"slots": 1000}, "Slots: "),
        ({**TYPED, "key_length": 80, "cache_type": "q8_0"}, "do not divide into blocks"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    browser: Client, fields: dict[str, Any], said: str
) -> None:
    assert said in post(browser, status=422, **fields)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a model, but a longer text"])
def test_another_file_is_refused(browser: Client, content: bytes) -> None:
    text = post(browser, status=422, file=SimpleUploadedFile("a.gguf", content))
    assert "GGUF" in text or "header" in text


def test_a_pasted_command_is_explained_and_its_errors_named(browser: Client) -> None:
    text = post(browser, configuration="llama-server -m a.gguf -c 8192 -np 2 --mlock <b>")
    assert "2 slots of 4,096 tokens, f16" in text
    assert "Use --load-mode mlock." in text
    assert "number of server slots" in text
    assert "<b>" not in text
    assert "Name the model’s file" in text


def test_a_pasted_command_with_the_models_figures_says_what_it_needs(browser: Client) -> None:
    text = post(browser, configuration="llama-server -m a.gguf -c 8192 -np 1", **TYPED)
    assert "Memory: 5.34 GiB, and what is not reported of 24.00 GiB: fits" in text


def test_a_configuration_that_cannot_be_read_is_refused(browser: Client) -> None:
    assert "no llama-server" in post(browser, status=422, configuration="vllm serve")


def test_a_preset_shows_its_models_in_one_memory(browser: Client) -> None:
    text = post(browser, preset="16 GB", gpus="")
    assert "14.00 GiB of 16.00 GiB" in text
    assert "Qwen3-8B-Q4_K_M, 2 slots of 16,384 tokens, q8_0" in text
    assert text.count('class="memory-key"') == 3
    assert "together:" in text
    assert "Preset: " in post(browser, status=422, preset="7 GB")
