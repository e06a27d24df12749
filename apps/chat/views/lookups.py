"""Rows of the current user by the keys in a form. Anything else is a 404."""

from django.http import HttpRequest

from apps.chat.lookups import get_answer, get_conversation, get_message
from apps.chat.models import Conversation, Preset, Project, SystemPrompt
from apps.core.api import get_owned, owner

__all__ = [
    "get_answer",
    "get_chat_or_draft",
    "get_conversation",
    "get_message",
    "get_preset",
    "get_project",
    "get_prompt",
]


def get_chat_or_draft(request: HttpRequest, pk: int) -> Conversation:
    """Return a chat, or the row with the settings of the next one."""
    draft = Conversation.drafts.owned_by(owner(request)).filter(pk=pk, is_draft=True).first()
    return draft or get_conversation(request, pk)


def get_preset(request: HttpRequest, key: str) -> Preset:
    """Return the preset that a form names; an empty one if it names none."""
    if not key:
        return Preset()
    presets = Preset.objects.select_related("server", "system_prompt")
    return get_owned(presets, request, int(key) if key.isdecimal() else 0)


def get_prompt(request: HttpRequest, key: str) -> SystemPrompt | None:
    """Return the system prompt that a form names; None if it names none."""
    if not key:
        return None
    return get_owned(SystemPrompt, request, int(key) if key.isdecimal() else 0)


def get_project(request: HttpRequest, key: str) -> Project | None:
    """Return the project that a form names; None if it names none."""
    if not key:
        return None
    projects = Project.objects.select_related("preset__system_prompt", "system_prompt", "server")
    return get_owned(projects, request, int(key) if key.isdecimal() else 0)
