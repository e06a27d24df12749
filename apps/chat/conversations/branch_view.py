"""The active branch of a conversation, as pages and the API show it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from apps.chat.models import Conversation, Message

# A page of a long conversation starts with this many; the rest is loaded on scrolling.
MESSAGES_AT_ONCE = 30
CONTEXT_MESSAGES = 4  # before a message that was searched for


@dataclass(frozen=True)
class MessageView:
    """A message on the page, with its siblings."""

    message: Message
    siblings: Sequence[int]
    is_last: bool = False
    compared_with: Message | None = None
    """The answer next to it."""
    is_first_answer: bool = False
    """True if no earlier prompt could be in the server's cache."""

    @property
    def number(self) -> int:
        return self.siblings.index(self.message.pk) + 1

    @property
    def previous(self) -> int | None:
        return self.siblings[self.number - 2] if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.siblings[self.number] if self.number < len(self.siblings) else None


@dataclass(frozen=True)
class Branch:
    """The IDs of the messages from the root to the active leaf."""

    conversation: Conversation
    path: Sequence[int]
    parents: Mapping[int, int | None]
    """Of all messages of the conversation."""

    @classmethod
    def active(cls, conversation: Conversation) -> Self:
        tree = conversation.messages.filter(deleted_at=None).order_by("pk")
        parents = dict(tree.values_list("pk", "parent_id"))
        path: list[int] = []
        current = conversation.active_leaf_id
        while current is not None and current in parents:
            path.append(current)
            current = parents[current]
        return cls(conversation, path[::-1], parents)

    def views(self, start: int = 0, end: int | None = None) -> list[MessageView]:
        """Return a part of the branch as the page shows it, with as many queries for any length."""
        siblings: dict[int | None, list[int]] = defaultdict(list)
        for pk, parent in self.parents.items():
            siblings[parent].append(pk)
        part = self.path[start:end]
        messages = Message.objects.filter(pk__in=part)
        messages = messages.prefetch_related("attachments", "tool_calls")
        by_id = {message.pk: message for message in messages.live()}
        leaf = self.conversation.active_leaf_id
        compared = _compared_answers(by_id.values(), set(self.parents))
        return [
            MessageView(
                by_id[pk],
                siblings[self.parents[pk]],
                is_last=pk == leaf,
                compared_with=compared.get(pk),
                is_first_answer=self.parents[pk] == self.path[0],
            )
            for pk in part
        ]


@dataclass(frozen=True)
class Window:
    """The part of a branch that a page shows."""

    views: list[MessageView]
    earlier: int
    """Number of messages of the branch before it."""


def window(branch: Branch, *, before: int | None = None, target: int | None = None) -> Window:
    """Return the newest messages of a branch.

    Args:
        before: return those that come before this message instead.
        target: include the messages from this one on.
    """
    path = branch.path
    end = path.index(before) if before in path else len(path)
    start = max(0, end - MESSAGES_AT_ONCE)
    if target in path:
        start = min(start, max(0, path.index(target) - CONTEXT_MESSAGES))
    return Window(branch.views(start, end), start)


def active_branch(conversation: Conversation) -> list[MessageView]:
    """Return all messages of the active branch, in order."""
    return Branch.active(conversation).views()


def view_of(message: Message) -> MessageView:
    """Return one message with its siblings."""
    siblings = Message.objects.filter(
        conversation_id=message.conversation_id, parent_id=message.parent_id, deleted_at=None
    )
    return MessageView(
        message,
        list(siblings.order_by("pk").values_list("pk", flat=True)),
        is_first_answer=message.parent is not None and message.parent.parent_id is None,
    )


def _compared_answers(messages: Iterable[Message], existing: set[int]) -> dict[int, Message]:
    """Return the answers that some messages are compared with, by message."""
    others = {m.pk: other for m in messages if (other := m.request.get("beside")) in existing}
    found = Message.objects.filter(pk__in=others.values()).live() if others else []
    by_id = {message.pk: message for message in found}
    return {pk: by_id[other] for pk, other in others.items() if other in by_id}
