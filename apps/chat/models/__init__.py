"""Conversations: a tree of messages, so that an edit or another answer never destroys one.

Django finds the models of an app here.
"""

from apps.chat.models.attachments import Attachment, AttachmentKind
from apps.chat.models.calls import CUT_OFF, NOT_RUN, CallState, ToolCall, stop_calls
from apps.chat.models.conversations import (
    TITLE_LENGTH,
    Conversation,
    ConversationQuerySet,
    Share,
    Tag,
)
from apps.chat.models.documents import Document, DocumentPrefix, DocumentState, Passage
from apps.chat.models.messages import (
    THOUGHT_TOO_LONG,
    Message,
    Rating,
    RatingWord,
    Role,
    Status,
    Usage,
)
from apps.chat.models.orphans import mark_orphans_interrupted
from apps.chat.models.presets import Preferences, Preset, Prompt, SystemPrompt
from apps.chat.models.projects import Project
from apps.chat.models.stored_json import (
    MAX_ROUNDS,
    ROUNDS,
    AnswerRequest,
    AnswerSettings,
    PromptPrefix,
    SamplingParams,
    ToolSettings,
)
from apps.chat.models.summaries import Summary, SummaryState

__all__ = [
    "CUT_OFF",
    "MAX_ROUNDS",
    "NOT_RUN",
    "ROUNDS",
    "THOUGHT_TOO_LONG",
    "TITLE_LENGTH",
    "AnswerRequest",
    "AnswerSettings",
    "Attachment",
    "AttachmentKind",
    "CallState",
    "Conversation",
    "ConversationQuerySet",
    "Document",
    "DocumentPrefix",
    "DocumentState",
    "Message",
    "Passage",
    "Preferences",
    "Preset",
    "Project",
    "Prompt",
    "PromptPrefix",
    "Rating",
    "RatingWord",
    "Role",
    "SamplingParams",
    "Share",
    "Status",
    "Summary",
    "SummaryState",
    "SystemPrompt",
    "Tag",
    "ToolCall",
    "ToolSettings",
    "Usage",
    "mark_orphans_interrupted",
    "stop_calls",
]
