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
class AnswerCard:
    """One of several answers that stand next to each other."""

    message: Message

    @property
    def model(self) -> str:
        """Name of its model; "" while only the server knows it."""
        settings = self.message.answer_request.settings
        return self.message.model or (settings.model if settings else "")

    @property
    def server(self) -> int | None:
        """Key of the server that was chosen for it; None for the chat's own."""
        settings = self.message.answer_request.settings
        return settings.server if settings else None

    @property
    def preset(self) -> str:
        return self.message.answer_request.preset


@dataclass(frozen=True)
class MessageView:
    """A message on the page, with its siblings."""

    message: Message
    siblings: Sequence[int]
    is_last: bool = False
    cards: Sequence[AnswerCard] = ()
    """This answer and those next to it, in order; empty if it stands alone."""

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
        compared = _compared_answers(by_id.values())
        return [
            MessageView(
                by_id[pk],
                siblings[self.parents[pk]],
                is_last=pk == leaf,
                cards=compared.get(pk, ()),
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
    )


def _compared_answers(messages: Iterable[Message]) -> dict[int, list[AnswerCard]]:
    """Return the answers that stand next to each other, by the one on the branch."""
    shown = {m.pk: m for m in messages if "beside" in m.request}
    if not shown:
        return {}
    others = Message.objects.filter(
        parent__in={m.parent_id for m in shown.values()}, deleted_at=None
    ).exclude(pk__in=shown)
    found = others.prefetch_related("tool_calls").order_by("pk").live()
    groups = {pk: sorted([m, *_next_to(m, found)], key=_key) for pk, m in shown.items()}
    return {pk: [AnswerCard(m) for m in group] for pk, group in groups.items() if len(group) > 1}


def _key(message: Message) -> int:
    return message.pk


def _next_to(answer: Message, siblings: Iterable[Message]) -> list[Message]:
    """Return the answer that this one is compared with, and the others that are."""
    first = answer.request["beside"]
    return [other for other in siblings if first in (other.pk, other.request.get("beside"))]
