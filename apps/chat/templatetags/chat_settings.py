"""What the settings page shows of a person's chats."""

from typing import Any

from django import template
from django.template.context import Context

from apps.chat.models import Conversation, Preferences, Preset, Prompt, Share, SystemPrompt

register = template.Library()


@register.simple_tag(takes_context=True)
def chat_settings(context: Context) -> dict[str, Any]:
    """{% chat_settings as chat %}: preferences, system prompts, shares and counts."""
    user = context["user"]
    return {
        "preferences": Preferences.objects.filter(owner=user).first() or Preferences(),
        "presets": Preset.objects.owned_by(user).count(),
        "messages": Prompt.objects.owned_by(user).latest_versions().count(),
        "prompts": SystemPrompt.objects.owned_by(user).latest_versions().order_by("name"),
        "shares": Share.objects.owned_by(user).filter(conversation__deleted_at=None),
        "count": Conversation.objects.owned_by(user).filter(deleted_at=None).count(),
    }
