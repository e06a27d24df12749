"""Read-only copies of a conversation for everyone with an account."""

from django.contrib.auth.models import User
from django.db import transaction

from apps.chat.conversations.branch_view import active_branch
from apps.chat.errors import ChatError, TemporaryChat
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Share
from apps.core import quotas


class NothingToShare(ChatError):
    code = "nothing_to_share"

    def __init__(self) -> None:
        super().__init__("This chat is empty. There is nothing to share yet.")


def share(owner: User, conversation: Conversation, *, with_thinking: bool = True) -> Share:
    """Copy the active branch. Later messages and deletions do not change the copy.

    Args:
        with_thinking: copy the reasoning too.

    Raises:
        NothingToShare, TemporaryChat
        LimitReached: this person has too many shares.
    """
    if conversation.temporary_until is not None:
        raise TemporaryChat
    messages = [
        {
            "role": view.message.role,
            "content": view.message.content,
            "reasoning": view.message.reasoning if with_thinking else "",
            "model": view.message.model,
        }
        for view in active_branch(conversation)
        if view.message.content
    ]
    if not messages:
        raise NothingToShare
    title = str(conversation)[:TITLE_LENGTH]
    with quotas.counting(owner):
        quotas.check("shares", Share.objects.owned_by(owner).count())
        return Share.objects.create(
            owner=owner, conversation=conversation, title=title, messages=messages
        )


@transaction.atomic
def continue_copy(owner: User, shared: Share) -> Conversation:
    """Copy the messages of a share into a new chat of `owner`, who goes on with it."""
    conversation = Conversation.objects.create(owner=owner, title=shared.title)
    leaf: Message | None = None
    for message in shared.messages:
        leaf = Message.objects.create(
            conversation=conversation,
            parent=leaf,
            role=message["role"],
            content=message["content"],
            reasoning=message["reasoning"],
            model=message["model"],
        )
    conversation.active_leaf = leaf
    conversation.save(update_fields=["active_leaf"])
    return conversation
