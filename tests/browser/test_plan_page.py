"""“Plan a server” in a browser: what of a large model is sent."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.tuning.planner.tiny_shapes import SHAPES, write_shape

SENT_BYTES = 9 * 1024**2
MODEL_BYTES = 3 * 1024**3


def test_only_the_beginning_of_a_model_is_sent(page: Page, tmp_path: Path) -> None:
    model = write_shape(tmp_path / "Large.gguf", SHAPES["GQA"])
    with model.open("ab") as file:
        file.truncate(MODEL_BYTES)  # a hole: it takes no space
    page.goto("/servers/plan/")
    page.get_by_label("Model file (GGUF)").set_input_files(model)
    expect(page.locator("[name=file_bytes]")).to_have_value(str(MODEL_BYTES))
    assert page.evaluate("document.querySelector('[name=file]').files[0].size") == SENT_BYTES
    page.get_by_label("Slots").press("Enter")
    expect(page.get_by_role("heading", name="How to start it")).to_be_visible()
    expect(page.locator("#plan-command")).to_contain_text("--model Large.gguf")
