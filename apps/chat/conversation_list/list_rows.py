"""The rows of the chat list: their headings by date, and the state that each shows."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db.models import F

from apps.chat.conversation_list.library import list_conversations
from apps.chat.models import CallState, Conversation, Message, Status, Tag, ToolCall

ENDED_BADLY = frozenset({Status.FAILED, Status.INTERRUPTED})
TAG_COLOURS = 3


@dataclass(frozen=True)
class Row:
    """A conversation in the list."""

    conversation: Conversation
    state: str
    """The first that applies: allow, writing, unread, failed, or ""."""
    heading: str
    """Heading above it; "" under the heading of the row before."""

    @property
    def tag(self) -> Tag | None:
        return next(iter(self.conversation.tags.all()), None)

    @property
    def tag_colour(self) -> int:
        """Number of the colour of its tag's dot, from 2 on as the colours of charts."""
        return 2 + (self.tag.pk % TAG_COLOURS if self.tag else 0)


def read_rows(
    owner: User,
    *,
    now: datetime,
    start: int = 0,
    length: int | None = None,
    heading: str = "",
    grouped: bool = True,
    tag: int | None = None,
    archived: bool = False,
    project: int | None = None,
) -> list[Row]:
    """Return a part of one list of conversations.

    Args:
        now: in the time zone of the reader.
        heading: the heading of the row before this part.
        grouped: False for a list without headings.
        tag, archived, project: which list, as `list_conversations` takes them.
    """
    unfinished = _unfinished(owner)
    found = list_conversations(owner, tag=tag, archived=archived, project=project)
    found = found.annotate(leaf_status=F("active_leaf__status"))
    found = found.only("title", "pinned", "unread", "updated", "owner", "active_leaf")
    end = None if length is None else start + length
    conversations = list(found.prefetch_related("tags")[start:end])
    headings = _headings(conversations, now, heading) if grouped else [""] * len(conversations)
    states = _states(conversations, unfinished)
    return [
        Row(one, state, above)
        for one, state, above in zip(conversations, states, headings, strict=True)
    ]


def rows_of(owner: User, keys: Collection[int]) -> list[Row]:
    """Return the rows of some conversations, without headings and in any order."""
    unfinished = _unfinished(owner)
    found = Conversation.objects.owned_by(owner).filter(pk__in=keys)
    found = found.annotate(leaf_status=F("active_leaf__status")).prefetch_related("tags")
    conversations = list(found.only("title", "pinned", "unread", "owner", "active_leaf"))
    states = _states(conversations, unfinished)
    return [Row(one, state, "") for one, state in zip(conversations, states, strict=True)]


def writing_keys(owner: User) -> set[int]:
    """Return the conversations in which an answer is being written or waits for approval."""
    return {message.conversation_id for message in _unfinished(owner)}


def needs_attention(owner: User) -> bool:
    """Return True if a conversation has a new answer, or a call that waits for approval."""
    unread = Conversation.objects.owned_by(owner).filter(unread=True, archived=False)
    listed = ToolCall.objects.owned_by(owner).filter(answer__conversation__temporary_until=None)
    calls = listed.filter(state=CallState.WAITING)
    return unread.order_by().values("pk").union(calls.order_by().values("pk"), all=True).exists()


def _unfinished(owner: User) -> list[Message]:
    found = Message.objects.unfinished().owned_by(owner)
    return [message for message in found.live() if not message.is_finished]


def _waiting(answers: Collection[int]) -> set[int]:
    """Return the conversations of these answers with a call that waits for approval."""
    if not answers:
        return set()
    calls = ToolCall.objects.filter(answer__in=answers, state=CallState.WAITING)
    return set(calls.values_list("answer__conversation_id", flat=True))


def _states(conversations: Iterable[Conversation], unfinished: Iterable[Message]) -> list[str]:
    """Return the state of each.

    Args:
        unfinished: read before the conversations: that marks answers whose process has died.
    """
    writing = {message.conversation_id for message in unfinished}
    # After a restart calls of an interrupted answer still wait.
    interrupted = [
        one.active_leaf_id
        for one in conversations
        if _leaf_status(one) == Status.INTERRUPTED and one.active_leaf_id
    ]
    waiting = _waiting([*(message.pk for message in unfinished), *interrupted])
    return [_state(one, writing, waiting) for one in conversations]


def _state(one: Conversation, writing: set[int], waiting: set[int]) -> str:
    if one.pk in waiting:
        return "allow"
    if one.pk in writing:
        return "writing"
    if one.unread:
        return "unread"
    return "failed" if _leaf_status(one) in ENDED_BADLY else ""


def _leaf_status(one: Conversation) -> str | None:
    """Return the status of its last message, which the query added."""
    status: str | None = getattr(one, "leaf_status", None)
    return status


def _headings(conversations: Iterable[Conversation], now: datetime, before: str) -> list[str]:
    found = []
    for one in conversations:
        here = heading_of(one, now)
        found.append("" if here == before else here)
        before = here
    return found


def heading_of(one: Conversation, now: datetime) -> str:
    return "Pinned" if one.pinned else date_heading(one.updated, now)


def date_heading(moment: datetime, now: datetime) -> str:
    """Return the heading of a moment, in the time zone of `now`: "Today", ..., "May 2025"."""
    then, today = moment.astimezone(now.tzinfo).date(), now.date()
    days = (today - then) // timedelta(days=1)
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days <= 7:
        return "Previous 7 days"
    if (then.year, then.month) == (today.year, today.month):
        return f"Earlier in {then:%B}"
    return f"{then:%B}" if then.year == today.year else f"{then:%B %Y}"


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name; UTC if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return ZoneInfo("UTC")
