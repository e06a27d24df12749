"""A person with a preset and its system prompt."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.chat.models import Preset, SystemPrompt


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def teacher(alice: User) -> SystemPrompt:
    return SystemPrompt.objects.create(owner=alice, name="Teacher", text="You teach.")


@pytest.fixture
def preset(alice: User, teacher: SystemPrompt) -> Preset:
    # Parameters of programs, which the form does not show.
    params = {"temperature": 0.5, "chat_template_kwargs": {"a": 1}}
    return Preset.objects.create(owner=alice, name="Calm", system_prompt=teacher, params=params)


def edit_url(preset: Preset) -> str:
    return reverse("presets:edit", args=[preset.pk])


def filled(preset: Preset, **changed: str) -> dict[str, str]:
    """The form of a preset as its page sends it, with changes."""
    key = str(preset.system_prompt_id or "")
    text = preset.system_prompt.text if preset.system_prompt else ""
    form = {"name": preset.name, "model": "", "system_prompt": key, "text_of": key, "text": text}
    return form | {"temperature": "0.5", "thinking": "default"} | changed
