"""Whole documents in the prefix of a conversation: chosen once, at its first message."""

import hashlib

from apps.chat.knowledge.documents import text_of
from apps.chat.knowledge.passages import whole_block
from apps.chat.models import Conversation, Document, DocumentPrefix


def freeze(conversation: Conversation) -> None:
    """Give a new conversation the whole documents of its project. They never change after that."""
    if conversation.project_id is None or conversation.documents_id is not None:
        return
    chosen = list(
        Document.objects.filter(project=conversation.project_id, whole=True, tokens__isnull=False)
    )
    if not chosen:
        return
    text = whole_block((document.name, text_of(document)) for document in chosen)
    digest = hashlib.sha256(text.encode()).hexdigest()
    prefix, _ = DocumentPrefix.objects.get_or_create(
        owner_id=conversation.owner_id,
        digest=digest,
        defaults={"text": text, "document_ids": [document.pk for document in chosen]},
    )
    conversation.documents = prefix
    conversation.save(update_fields=["documents"])
