"""The panel of a conversation, and presets over HTTP."""

import html
import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.conversations import services
from apps.chat.models import Conversation, Preset, SamplingParams
from apps.chat.presets import presets, system_prompts
from apps.chat.prompt import build, params_form
from apps.llm.thinking import EXPECTED
from apps.servers.models import Server, State
from tests.chat.conftest import told
from tests.chat.views.test_pages import page
from tests.markup import visible_text

FIELDS = {
    "temperature": "0.7", "min_p": "0.05", "top_k": "40", "max_tokens": "300", "seed": "42",
    "dry_multiplier": "0.8", "stop": "END\n###\n", "thinking": "512",
}  # fmt: skip
MEANT = {
    "temperature": 0.7, "min_p": 0.05, "top_k": 40, "max_tokens": 300, "seed": 42,
    "dry_multiplier": 0.8, "stop": ["END", "###"], "thinking": 512,
}  # fmt: skip


def panel(client: Client, conversation: Conversation) -> str:
    address = reverse("chat:settings", args=[conversation.pk])
    return client.get(address).content.decode()


def test_the_form_and_back() -> None:
    assert params_form.parse_form(FIELDS).to_json() == MEANT
    shown = params_form.form_values(SamplingParams(**MEANT))
    assert shown == FIELDS | {"stop": "END\n###"}
    assert params_form.parse_form(shown).to_json() == MEANT
    assert params_form.parse_form({}).to_json() == {}


@pytest.mark.parametrize(
    ("name", "typed", "sentence"),
    [
        ("temperature", "warm", "Temperature must be a number, not “warm”."),
        ("temperature", "11", "Temperature must be between 0 and 10."),
        ("temperature", "nan", "Temperature must be between 0 and 10."),
        ("top_k", "2.5", "Top-k must be a whole number, not “2.5”."),
        ("max_tokens", "0", "Max tokens must be between 1 and 1000000."),
        ("thinking", "much", f"Thinking: {EXPECTED}"),
        ("stop", "x\n" * 17, "Up to 16 stop sequences are allowed. You entered 17."),
    ],
)
def test_parse_params_names_the_field_that_cannot_be_used(
    name: str, typed: str, sentence: str
) -> None:
    with pytest.raises(params_form.BadParams) as error:
        params_form.parse_form({name: typed})
    assert error.value.errors == {name: sentence}


def test_params_form_keeps_parameters_that_it_does_not_show() -> None:
    before = SamplingParams(
        chat_template_kwargs={"enable_thinking": True, "style": "dry"}, reasoning_effort="high"
    )
    merged = params_form.merge(before, SamplingParams(thinking="off"))
    assert merged.to_json() == {
        "chat_template_kwargs": {"style": "dry"},
        "reasoning_effort": "high",
        "thinking": "off",
    }


def test_panel_shows_server_model_and_saves_changes(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "Hello", "Hi")
    html = panel(browser, conversation)
    assert "Demo: 4 slots of 2,048 tokens" in visible_text(html)
    assert "workbench-demo" in html
    prompt = system_prompts.list_system_prompts(alice)[0]
    saved = browser.post(
        reverse("chat:settings", args=[conversation.pk]),
        FIELDS | {"model": f"{demo_server.pk} other", "system_prompt": prompt.pk},
    )
    assert "Saved." in saved.content.decode()
    assert "other" in saved.content.decode()  # the head of the page follows
    conversation.refresh_from_db()
    assert conversation.params == MEANT
    assert (conversation.server, conversation.model) == (demo_server, "other")
    assert conversation.system_prompt == prompt
    assert 'value="0.7"' in panel(browser, conversation)


def test_a_bad_value_changes_nothing(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    for bad in ({"top_p": "7"}, {"model": "99 x"}, {"model": "x"}):
        said = browser.post(reverse("chat:settings", args=[conversation.pk]), bad)
        assert said.status_code == 422
        assert "Not saved:" in said.content.decode()
    conversation.refresh_from_db()
    assert (conversation.params, conversation.server) == ({}, None)


def test_the_state_of_the_server_is_shown(
    alice: User,
    browser: Client,
    demo_server: Server,
) -> None:
    conversation = told(alice, "Hello", "Hi")
    demo_server.state = State.LOADING
    demo_server.save()
    head = browser.get(reverse("chat:model", args=[conversation.pk])).content.decode()
    assert "loading…" in head
    assert "every 2s" in head
    demo_server.state = State.READY
    demo_server.save()
    head = browser.get(reverse("chat:model", args=[conversation.pk])).content.decode()
    assert "every 2s" not in head


def test_a_preset(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    presets.save(
        owner=alice, name="Dry", server=demo_server, model="m", system_prompt=None,
        params=SamplingParams(temperature=0.1),
    )  # fmt: skip
    preset = Preset.objects.get()
    html = browser.post(
        reverse("chat:apply_preset", args=[conversation.pk]), {"preset": preset.pk}
    ).content.decode()
    assert "Preset applied." in html
    conversation.refresh_from_db()
    assert (conversation.model, conversation.params) == ("m", {"temperature": 0.1})
    browser.post(reverse("chat:save_preset", args=[conversation.pk]), {"name": "Copy"})
    assert Preset.objects.get(name="Copy").params == {"temperature": 0.1}
    browser.post(reverse("chat:delete_preset", args=[conversation.pk]), {"preset": preset.pk})
    assert [p.name for p in Preset.objects.all()] == ["Copy"]
    no_name = browser.post(reverse("chat:save_preset", args=[conversation.pk]), {"name": " "})
    assert no_name.status_code == 422


def test_a_new_version_of_the_system_prompt(
    alice: User,
    browser: Client,
    demo_server: Server,
) -> None:
    conversation = told(alice, "Hello", "Hi")
    address = reverse("chat:write_prompt", args=[conversation.pk])
    browser.post(address, {"name": "Poet", "text": "Rhyme."})
    browser.post(address, {"name": "Poet", "text": "Rhyme well."})
    conversation.refresh_from_db()
    assert str(conversation.system_prompt) == "Poet (version 2)"
    assert "Rhyme well." in page(browser, conversation)
    assert browser.post(address, {"name": "Poet", "text": ""}).status_code == 422


def test_preset_and_prompt_of_someone_else_are_not_found(
    alice: User,
    bob: User,
    browser: Client,
    demo_server: Server,
) -> None:
    conversation = told(alice, "Hello", "Hi")
    his = presets.save(
        owner=bob, name="His", server=None, model="", system_prompt=None, params=SamplingParams()
    )
    prompt = system_prompts.save_system_prompt(owner=bob, name="His", text="x")
    args = [conversation.pk]
    for name, data in (
        ("apply_preset", {"preset": his.pk}),
        ("delete_preset", {"preset": his.pk}),
        ("settings", {"system_prompt": prompt.pk}),
    ):
        assert browser.post(reverse(f"chat:{name}", args=args), data).status_code == 404
    assert Preset.objects.filter(pk=his.pk).exists()


def test_presets_over_http(alice: User, api: Client, bobs_api: Client, server: Server) -> None:
    body = {"name": "Dry", "model": "m", "params": {"temperature": 0.1}}
    made = api.post("/api/v1/presets", body, content_type="application/json")
    assert made.status_code == 201
    listed = api.get("/api/v1/presets").json()["items"]
    assert [item["params"] for item in listed] == [{"temperature": 0.1}]
    assert bobs_api.get("/api/v1/presets").json()["items"] == []
    opened = api.post(
        "/api/v1/conversations", {"preset": made.json()["id"]}, content_type="application/json"
    )
    assert opened.json()["params"] == {"temperature": 0.1}
    assert opened.json()["model"] == "m"
    assert bobs_api.delete(f"/api/v1/presets/{made.json()['id']}").status_code == 404
    assert api.delete(f"/api/v1/presets/{made.json()['id']}").status_code == 204
    bad = api.post(
        "/api/v1/presets", {"name": "x", "params": {"top_p": 3}}, content_type="application/json"
    )
    assert bad.status_code == 422


def test_panel_warns_what_another_system_prompt_costs(
    alice: User, browser: Client, demo_server: Server
) -> None:
    warning = "Changing this makes the server reprocess the whole chat."
    assert warning in panel(browser, told(alice, "Hello", "Hi"))
    assert warning not in panel(browser, services.open_conversation(owner=alice))


SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


def test_answers_with_fields(alice: User, browser: Client, demo_server: Server) -> None:
    conversation = told(alice, "Hello", "Hi")
    address = reverse("chat:response_fields", args=[conversation.pk])
    said = browser.post(address, {"schema": json.dumps(SCHEMA)}).content.decode()
    assert "Structured output on: 1 field." in said
    conversation.refresh_from_db()
    described = conversation.response_format["json_schema"]
    assert described["schema"] == SCHEMA | {"additionalProperties": False}
    assert build.for_next(conversation, "?").response_format == conversation.response_format
    assert build.side_request(conversation, "?", max_tokens=9).response_format is None
    assert "Structured output (JSON) (1 field)" in visible_text(panel(browser, conversation))
    preset = presets.save_as("Names", conversation, alice)
    other = told(alice, "Hello", "Hi")
    presets.apply(preset, other)
    assert other.response_format == conversation.response_format
    assert "Structured output off" in browser.post(address, {"schema": "{}"}).content.decode()
    conversation.refresh_from_db()
    assert conversation.response_format == {}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("{", "The schema is not valid JSON"),
        ("[1]", "An answer must be a JSON object"),
        (
            '{"type": "object", "required": ["a", "a"], "properties": {"a": {"type": "string"}}}',
            "two fields named “a”",
        ),
        ('{"type": "object", "properties": {"a": {"type": "date"}}}', "“a” needs one type of"),
        ('{"type": "object", "properties": {"a": {"enum": []}}}', "at least one value"),
    ],
)
def test_fields_that_cannot_be_used(
    alice: User, browser: Client, demo_server: Server, typed: str, sentence: str
) -> None:
    conversation = told(alice, "Hello", "Hi")
    address = reverse("chat:response_fields", args=[conversation.pk])
    said = browser.post(address, {"schema": typed})
    assert said.status_code == 422
    assert sentence in html.unescape(said.content.decode())
    conversation.refresh_from_db()
    assert conversation.response_format == {}


def test_panel_warns_of_changes_while_a_prompt_is_written(
    alice: User, browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "Hello", "Hi")
    address = reverse("chat:check_prompt", args=[conversation.pk])
    said = html.unescape(
        browser.post(address, {"text": "Today is Monday. {{ user }}"}).content.decode()
    )
    assert "“{{ user }}”: this is not replaced" in said
    assert "“Today is Monday”: only true on the day it was written" in said
    assert browser.post(address, {"text": "Be brief."}).content.decode().strip() == ""
    browser.post(
        reverse("chat:write_prompt", args=[conversation.pk]),
        {"name": "Dated", "text": "It is 2026-01-01."},
    )
    assert "“2026-01-01”" in html.unescape(panel(browser, conversation))


def test_fields_and_checks_are_of_nobody_elses_and_by_post(
    alice: User, browser: Client, bobs_browser: Client, demo_server: Server
) -> None:
    conversation = told(alice, "Hello", "Hi")
    for name in ("response_fields", "check_prompt"):
        address = reverse(f"chat:{name}", args=[conversation.pk])
        assert bobs_browser.post(address).status_code == 404
        assert browser.get(address).status_code == 405
