"""Read-only copies of a conversation for everybody who has a login here."""

from django.contrib.auth.models import User

from apps.chat.conversations import services
from apps.chat.models import TITLE_LENGTH, Conversation, Share
from apps.core import quotas


class NothingToShare(services.ChatError):
    code = "nothing_to_share"

    def __init__(self) -> None:
        super().__init__("This chat is empty. There is nothing to share yet.")


def share(owner: User, conversation: Conversation, *, with_thinking: bool = True) -> Share:
    """A copy of the branch that is shown. What is said later, or deleted, does not change it.

    Args:
        with_thinking: whether it holds what the model thought before its answers.

    Raises:
        NothingToShare
        LimitReached
    """
    messages = [
        {
            "role": shown.message.role,
            "content": shown.message.content,
            "reasoning": shown.message.reasoning if with_thinking else "",
            "model": shown.message.model,
        }
        for shown in services.active_branch(conversation)
        if shown.message.content
    ]
    if not messages:
        raise NothingToShare
    quotas.check("shares", Share.objects.owned_by(owner).count())
    title = str(conversation)[:TITLE_LENGTH]
    return Share.objects.create(
        owner=owner, conversation=conversation, title=title, messages=messages
    )
