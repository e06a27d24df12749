"""The pages of presets, below the settings page."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.models import Preset, SystemPrompt
from apps.servers.models import Server
from tests.chat.views.preferences.conftest import edit_url, filled
from tests.markup import visible_text

pytestmark = pytest.mark.django_db

INDEX, NEW = "/settings/presets/", "/settings/presets/new/"


def error_at(html: str, name: str) -> str:
    """The error at a field that says that it is wrong."""
    [field] = re.findall(rf'<(?:input|select|textarea)[^>]*name="{name}"[^>]*>', html)
    assert 'aria-invalid="true"' in field
    assert f"id_{name}_error" in field
    [error] = re.findall(rf'id="id_{name}_error">([^<]+)<', html)
    return error


def test_the_list_says_what_each_preset_sets(browser: Client, preset: Preset, bob: User) -> None:
    Preset.objects.create(owner=bob, name="Bob's")
    text = visible_text(browser.get(INDEX).content.decode())
    assert "Calm Default model · Teacher · 2 parameters" in text
    assert "Bob" not in text
    preset.delete()
    assert "No presets yet" in browser.get(INDEX).content.decode()


def test_settings_lead_to_presets(browser: Client, preset: Preset) -> None:
    text = visible_text(browser.get("/settings/").content.decode())
    assert "1 preset." in text
    assert "Edit presets" in text


@pytest.mark.django_db(transaction=True)  # the server is asked for its models
@pytest.mark.usefixtures("server")
def test_a_preset_is_created_with_a_new_system_prompt(browser: Client, alice: User) -> None:
    server = Server.objects.get()
    form = {"name": "  Tests ", "model": f"{server.pk} tiny", "system_prompt": "new"}
    page = browser.get(NEW).content.decode()
    assert f'value="{server.pk} ' in page
    model = next(iter(re.findall(rf'value="({server.pk} [^"]+)"', page)))
    form |= {"model": model, "text": "You test.", "top_k": "40", "stop": "END\n"}
    assert browser.post(NEW, form)["Location"] == INDEX
    saved = Preset.objects.get(owner=alice)
    assert (saved.name, saved.server, f"{server.pk} {saved.model}") == ("Tests", server, model)
    assert saved.params == {"top_k": 40, "stop": ["END"]}
    assert saved.system_prompt is not None
    assert (saved.system_prompt.name, saved.system_prompt.text) == ("Tests", "You test.")


def test_a_changed_text_is_a_new_version(
    browser: Client, preset: Preset, teacher: SystemPrompt
) -> None:
    form = filled(preset, name="Calmer", text="You teach slowly.", temperature="", seed="7")
    browser.post(edit_url(preset), form)
    preset.refresh_from_db()
    assert preset.name == "Calmer"
    assert preset.params == {"seed": 7, "chat_template_kwargs": {"a": 1}}
    assert preset.system_prompt is not None
    assert (str(preset.system_prompt), preset.system_prompt.version) == ("Teacher (version 2)", 2)
    teacher.refresh_from_db()
    assert teacher.text == "You teach."


def test_what_did_not_change_is_no_version(browser: Client, preset: Preset) -> None:
    browser.post(edit_url(preset), filled(preset))
    assert SystemPrompt.objects.get(name="Teacher") == preset.system_prompt
    page = browser.get(edit_url(preset)).content.decode()
    assert "You teach." in page
    assert 'value="0.5"' in page


def test_the_text_of_another_prompt_is_not_written_to_the_chosen_one(
    browser: Client, preset: Preset, alice: User
) -> None:
    other = SystemPrompt.objects.create(owner=alice, name="Judge", text="You judge.")
    # As a page sends it whose script did not fetch the text of the new choice.
    browser.post(edit_url(preset), filled(preset, system_prompt=str(other.pk)))
    preset.refresh_from_db()
    assert preset.system_prompt == other
    assert SystemPrompt.objects.filter(name="Judge").count() == 1
    browser.post(edit_url(preset), filled(preset, system_prompt="", text_of=""))
    preset.refresh_from_db()
    assert preset.system_prompt is None


def test_errors_stand_at_their_fields(browser: Client, preset: Preset, alice: User) -> None:
    Preset.objects.create(owner=alice, name="Warm")
    wrong = {
        "name": {"": "Enter a preset name.", "Warm": "You already have a preset “Warm”."},
        "temperature": {"hot": "must be a number", "11": "must be between 0 and 10"},
        "stop": {"\n".join("abcdefghijklmnopq"): "Up to 16 stop sequences"},
        "model": {"99 gone": "This model is no longer available."},
        "system_prompt": {"99": "This system prompt was deleted."},
    }
    for name, values in wrong.items():
        for value, sentence in values.items():
            refused = browser.post(edit_url(preset), filled(preset, **{name: value}))
            assert refused.status_code == 422
            assert sentence in error_at(refused.content.decode(), name)
    empty = browser.post(NEW, {"name": "New", "system_prompt": "new", "text_of": "new"})
    assert "Enter the text of the system prompt" in error_at(empty.content.decode(), "text")
    preset.refresh_from_db()
    assert (preset.name, preset.params["temperature"]) == ("Calm", 0.5)
    assert Preset.objects.count() == 2


def test_a_refused_name_saves_no_system_prompt(browser: Client, preset: Preset) -> None:
    form = {"name": "Calm", "system_prompt": "new", "text_of": "new", "text": "You test."}
    assert browser.post(NEW, form).status_code == 422
    assert not SystemPrompt.objects.filter(text="You test.").exists()


def test_choosing_a_system_prompt_fetches_its_text(
    browser: Client, teacher: SystemPrompt, bob: User
) -> None:
    address = reverse("presets:system_prompt")
    assert "You teach." in browser.get(address, {"system_prompt": teacher.pk}).content.decode()
    assert "<textarea" in browser.get(address, {"system_prompt": "new"}).content.decode()
    assert "<textarea" not in browser.get(address, {"system_prompt": ""}).content.decode()
    his = SystemPrompt.objects.create(owner=bob, name="Secret", text="Bob's")
    assert browser.get(address, {"system_prompt": his.pk}).status_code == 404


def test_presets_of_others_are_not_found(
    browser: Client, preset: Preset, bob: User, teacher: SystemPrompt
) -> None:
    browser.force_login(bob)
    assert browser.get(edit_url(preset)).status_code == 404
    assert browser.post(edit_url(preset), filled(preset, name="Mine")).status_code == 404
    assert browser.post(reverse("presets:delete", args=[preset.pk])).status_code == 404
    form = {"name": "Mine", "system_prompt": str(teacher.pk), "text_of": "", "text": ""}
    assert browser.post(NEW, form).status_code == 422
    assert Preset.objects.get().name == "Calm"


def test_a_deleted_preset_leaves_its_system_prompt(browser: Client, preset: Preset) -> None:
    answer = browser.post(reverse("presets:delete", args=[preset.pk]), follow=True)
    assert "Preset “Calm” deleted." in answer.content.decode()
    assert not Preset.objects.exists()
    assert SystemPrompt.objects.filter(name="Teacher").exists()
