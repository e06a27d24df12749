"""Tools and structured output of presets, on their page and over HTTP."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.chat.conversations import services
from apps.chat.models import Preset, ToolSettings
from apps.chat.presets import presets
from tests.chat.views.preferences.conftest import edit_url, filled

pytestmark = pytest.mark.django_db


def test_a_preset_sets_tools_or_leaves_them_to_the_chat(
    browser: Client, preset: Preset, alice: User
) -> None:
    chat = services.open_conversation(owner=alice, tools=ToolSettings(use={"clock": "ask"}))
    browser.post(edit_url(preset), filled(preset, **{"use-calculator": "always"}))
    preset.refresh_from_db()
    presets.apply(preset, chat)
    assert chat.tool_settings.use == {"clock": "ask"}
    browser.post(edit_url(preset), filled(preset, tools="own", **{"use-calculator": "always"}))
    preset.refresh_from_db()
    assert presets.is_changed(preset, chat)
    assert "1 tool" in browser.get("/settings/presets/").content.decode()
    presets.apply(preset, chat)
    chat.refresh_from_db()
    assert chat.tool_settings.use == {"calculator": "always"}
    assert not presets.is_changed(preset, chat)
    assert presets.save_as("Sums", chat, alice).tools == {"use": {"calculator": "always"}}
    page = browser.get(edit_url(preset)).content.decode()
    field = page.split('name="use-calculator"')[1].split("</select>")[0]
    assert 'value="always" selected' in field


def test_structured_output_is_kept_or_changed(browser: Client, preset: Preset) -> None:
    stored = {"type": "json_object"}  # set over HTTP, without a schema
    Preset.objects.update(response_format=stored)
    browser.post(edit_url(preset), filled(preset, schema="{}"))
    preset.refresh_from_db()
    assert preset.response_format == stored
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    browser.post(edit_url(preset), filled(preset, schema=json.dumps(schema)))
    assert "JSON, 1 field" in browser.get("/settings/presets/").content.decode()
    refused = browser.post(edit_url(preset), filled(preset, schema='{"properties": {"a": 1}}'))
    assert refused.status_code == 422
    browser.post(edit_url(preset), filled(preset, schema="{}"))
    preset.refresh_from_db()
    assert preset.response_format == {}


def test_presets_over_http_have_tools_and_structured_output(browser: Client, alice: User) -> None:
    body = {
        "name": "Sums",
        "tools": {"use": {"calculator": "ask"}},
        "response_format": {"type": "json_object"},
    }
    made = browser.post("/api/v1/presets", body, content_type="application/json").json()
    assert made["tools"] == {"use": {"calculator": "ask"}}
    assert made["response_format"] == {"type": "json_object"}
    chat = browser.post(
        "/api/v1/conversations", {"preset": made["id"]}, content_type="application/json"
    ).json()
    assert chat["tools"] == {"use": {"calculator": "ask"}}
    body["tools"] = {"use": {"teleport": "ask"}}
    refused = browser.post("/api/v1/presets", body, content_type="application/json")
    assert refused.json()["code"] == "bad_tools"
