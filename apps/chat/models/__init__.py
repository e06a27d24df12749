"""Conversations: a tree of messages, so that an edit or another answer never destroys one.

Django finds the models of an app here.
"""

from apps.chat.models.calls import CallState, ToolCall
from apps.chat.models.conversations import (
    TITLE_LENGTH,
    Conversation,
    ConversationQuerySet,
    Share,
    Tag,
)
from apps.chat.models.messages import (
    Attachment,
    AttachmentKind,
    Message,
    Role,
    Status,
    Summary,
    SummaryState,
)
from apps.chat.models.presets import Preferences, Preset, SystemPrompt

__all__ = [
    "TITLE_LENGTH",
    "Attachment",
    "AttachmentKind",
    "CallState",
    "Conversation",
    "ConversationQuerySet",
    "Message",
    "Preferences",
    "Preset",
    "Role",
    "Share",
    "Status",
    "Summary",
    "SummaryState",
    "SystemPrompt",
    "Tag",
    "ToolCall",
]
