"""The cut of a conversation that exceeded its context, and the summary in its place."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.chat.conversations.branch_view import Branch
from apps.chat.conversations.context_meter import AnswerUsage, measure
from apps.chat.models import Message, Summary


@dataclass(frozen=True)
class Cut:
    """The part of a branch that the prompt of the newest answer left out."""

    before: int
    upto: int
    """The last message that was cut."""
    messages: int
    """Number of messages that were cut."""
    summary: Summary | None
    earlier_summary: Summary | None
    """Of an earlier cut: sent until there is one of this cut."""
    pinned: int
    """Number of pinned messages among them, which are still sent."""
    unsent_pins: int
    """Number of pinned messages that did not fit."""


def find_cut(branch: Branch, turns: Sequence[AnswerUsage] | None = None) -> Cut | None:
    """Return the newest cut of a branch; None while nothing was cut.

    Args:
        turns: the measured answers of the branch, if the caller has them.
    """
    turns = measure(branch) if turns is None else turns
    cut_before_message = turns[-1].cut_before_message if turns else None
    if cut_before_message is None or cut_before_message not in branch.path:
        return None
    cut = branch.path[: branch.path.index(cut_before_message)]
    gone = set(cut)
    found = Summary.objects.filter(upto__conversation=branch.conversation).live()
    summaries = sorted((s for s in found if s.upto_id in gone), key=lambda s: cut.index(s.upto_id))
    newest = summaries.pop() if summaries and summaries[-1].upto_id == cut[-1] else None
    pins = branch.conversation.messages.filter(pinned=True).values_list("pk", flat=True)
    pinned = gone.intersection(pins)
    sent = Message.objects.get(pk=turns[-1].answer).sent_prefix.pinned
    return Cut(
        before=cut_before_message,
        upto=cut[-1],
        messages=len(cut),
        summary=newest,
        earlier_summary=summaries[-1] if summaries else None,
        pinned=len(pinned),
        unsent_pins=len(pinned.difference(sent)) if sent is not None else 0,
    )
