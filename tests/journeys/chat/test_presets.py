"""A preset: created and edited on its page in Settings, then chosen in a chat."""

import re

from playwright.sync_api import Page, expect

from tests.journeys.conftest import arrive


def test_a_preset_is_edited_in_settings_and_chosen_in_a_chat(page: Page) -> None:
    page.goto("/settings/#prompts")
    page.get_by_role("link", name=re.compile("^(Edit presets|Create a preset)$")).click()
    page.get_by_role("link", name="New preset").click()
    page.get_by_role("button", name="Create preset").press("Enter")
    expect(page.get_by_text("Enter a preset name.")).to_be_visible()
    expect(page.get_by_label("Name")).to_be_focused()

    page.keyboard.type("Soft voice")
    page.get_by_label("System prompt", exact=True).select_option("New system prompt")
    page.get_by_label("Text of the system prompt").fill("You are calm.")
    expect(page.get_by_label("Calculator")).to_be_hidden()
    page.get_by_label("Tools").select_option("Set by this preset")
    page.get_by_label("Calculator").select_option("Ask first")
    page.get_by_text("Structured output (JSON)").click()
    page.get_by_role("button", name="Add field").click()
    page.get_by_label("Field name").fill("city")
    page.get_by_label("Temperature").fill("0.3")
    page.keyboard.press("Enter")
    arrive(page, "/settings/presets/$")
    expect(page.get_by_text("Preset “Soft voice” saved.")).to_be_visible()
    sets = "Default model · Soft voice · 1 parameter · 1 tool · JSON, 1 field"
    expect(page.get_by_role("main")).to_contain_text(sets)

    page.get_by_role("link", name="Edit Soft voice").click()
    expect(page.get_by_label("Text of the system prompt")).to_have_value("You are calm.")
    page.get_by_label("System prompt", exact=True).select_option("Teacher")
    expect(page.get_by_label("Text of the system prompt")).to_have_value(
        "You are a patient teacher. Explain step by step."
    )
    page.get_by_role("button", name="Save preset").click()
    arrive(page, "/settings/presets/$")

    page.goto("/chat/")
    chip = page.locator("[data-chip=preset]")
    chip.click()
    page.locator("#composer-menu").get_by_role("button", name="Soft voice").click()
    expect(chip).to_contain_text("Soft voice")
    chip.click()
    page.get_by_role("link", name="Manage presets").click()
    page.get_by_role("link", name="Edit Soft voice").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete preset").click()
    expect(page.get_by_text("Preset “Soft voice” deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="Edit Soft voice")).to_have_count(0)
