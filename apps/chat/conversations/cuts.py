"""Where the beginning of a conversation was cut, and what was put in its place."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.chat.conversations.context_meter import Turn
from apps.chat.conversations.services import Branch
from apps.chat.models import Message, Summary


@dataclass(frozen=True)
class Cut:
    """Before which message the prompt of the newest answer began."""

    before: int
    upto: int
    """The last message that was cut."""
    messages: int
    """How many were."""
    summary: Summary | None
    earlier_summary: Summary | None
    """Of an earlier cut: sent as long as there is none of this one."""
    pinned: int
    """Pinned messages among them, which are sent all the same."""
    unsent_pins: int
    """Those that did not fit."""


def cut_of(branch: Branch, turns: Sequence[Turn]) -> Cut | None:
    """The newest cut of a branch; None while nothing was cut. Queries only if there was one."""
    cut_before_message = turns[-1].cut_before_message if turns else None
    if cut_before_message is None or cut_before_message not in branch.path:
        return None
    cut = branch.path[: branch.path.index(cut_before_message)]
    gone = set(cut)
    found = Summary.objects.filter(upto__conversation=branch.conversation)
    summaries = sorted((s for s in found if s.upto_id in gone), key=lambda s: cut.index(s.upto_id))
    newest = summaries.pop() if summaries and summaries[-1].upto_id == cut[-1] else None
    pins = branch.conversation.messages.filter(pinned=True).values_list("pk", flat=True)
    pinned = gone.intersection(pins)
    sent = Message.objects.filter(pk=turns[-1].answer).values_list("prompt_prefix", flat=True).get()
    return Cut(
        before=cut_before_message,
        upto=cut[-1],
        messages=len(cut),
        summary=newest,
        earlier_summary=summaries[-1] if summaries else None,
        pinned=len(pinned),
        unsent_pins=len(pinned.difference(sent["pinned"])) if "pinned" in sent else 0,
    )
