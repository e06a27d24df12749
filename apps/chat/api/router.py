"""The router of the chat's HTTP API."""

from ninja import Router

from apps.chat.api import (
    answers,
    conversations,
    cuts,
    documents,
    messages,
    presets,
    projects,
    transfer,
)

router = Router(tags=["chat"])
# Before conversations: /conversations/export is not a conversation.
for part in (transfer, presets, projects, documents, conversations, messages, answers, cuts):
    router.add_router("", part.router)
