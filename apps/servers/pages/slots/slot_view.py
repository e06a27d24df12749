"""A row of boxes, one per slot: its occupant, and the progress of its request. Pure.

A server reports that a slot is busy, never for whom. Workbench knows which requests it has sent,
not where they went. Both start in the order of arrival, so the oldest of ours is shown in the box
with the oldest task, and busy boxes beyond our own belong to other programs: the counts are right,
and which box is whose is a good guess.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from apps.servers.facts.slot_status import SlotStatus


class Occupant(StrEnum):
    IDLE = "idle"
    CHAT = "chat"
    """A person waits: chat, a preview, a single prediction."""
    AGENT = "agent"
    """A program that works by itself."""
    JOB = "job"
    """Batch and background work, which gives its slot to people and agents."""
    OTHER = "other"
    """Another program: the slot is busy and the request is not ours."""


class Phase(StrEnum):
    NONE = ""
    STARTING = "starting"
    """Sent, and not in a slot yet by the server's report."""
    SENT = "sent"
    """In progress, where the server does not show its slots."""
    PROMPT = "prompt"
    """The prompt is being processed."""
    GENERATING = "generating"


@dataclass(frozen=True)
class HeldPermit:
    """A permit of ours, which stands for one request at the server."""

    occupant: Occupant
    label: str = ""
    tokens: int = 0
    """Reserved: the estimated prompt plus max_tokens."""
    started: float = 0.0
    model: str = ""
    is_revoked: bool = False
    """True while its request is closed, because a person or an agent needs the slot."""


@dataclass(frozen=True)
class SlotView:
    """One slot as it is drawn. Shares are between 0 and 1, None where not known."""

    number: int
    occupant: Occupant = Occupant.IDLE
    label: str = ""
    phase: Phase = Phase.NONE
    prompt_tokens: int | None = None
    """Tokens of the prompt that are processed."""
    generated: int | None = None
    limit: int | None = None
    share: float | None = None
    """The processed share of the prompt, or the generated share of the answer's limit."""
    cached_share: float | None = None
    model: str = ""
    is_revoked: bool = False
    """True while its request is taken back for a person or an agent."""

    @property
    def owner(self) -> str:
        names = {
            Occupant.IDLE: "Free",
            Occupant.CHAT: "Chat",
            Occupant.AGENT: "Agent",
            Occupant.JOB: "Job",
        }
        return self.label or names.get(self.occupant, "Other program")

    @property
    def letter(self) -> str:
        """A letter for a box too small for words."""
        letters = {Occupant.IDLE: "", Occupant.OTHER: "?"}
        return letters.get(self.occupant, self.owner[0].upper())

    @property
    def details(self) -> list[str]:
        """One short phrase for each known fact: "340 of 800 tokens"."""
        if self.is_revoked:
            return ["giving its slot back"]
        match self.phase:
            case Phase.STARTING:
                return ["starting"]
            case Phase.SENT:
                return ["processing"]
            case Phase.PROMPT:
                known = "" if self.share is None else f", about {self.share * 100:.0f}%"
                phrases = [f"processing prompt{known}"]
                return (
                    [*phrases, f"{self.prompt_tokens:,} prompt tokens"]
                    if self.prompt_tokens
                    else phrases
                )
            case Phase.GENERATING:
                limit = f" of {self.limit:,}" if self.limit else ""
                phrases = [f"{self.generated or 0:,}{limit} tokens"]
                if self.cached_share is not None:
                    phrases.append(f"{self.cached_share * 100:.0f}% cached")
                return phrases
        return []

    @property
    def sentence(self) -> str:
        """The owner and details in one sentence, for screen readers."""
        return f"Slot {self.number}: " + ", ".join([self.owner, *self.details])

    @property
    def level(self) -> int | None:
        """The share in twentieths: a height for the bar that a class can carry."""
        return None if self.share is None else round(self.share * 20)


def slot_views(
    statuses: Sequence[SlotStatus], permits: Iterable[HeldPermit], slots: int
) -> list[SlotView]:
    """One box per slot, in the server's order.

    Args:
        statuses: the server's report; where it is empty, there are `slots` boxes, which hold our
            permits.
    """
    ours = sorted(permits, key=lambda permit: permit.started)
    if not statuses:
        held = [_ours(number, permit, Phase.SENT) for number, permit in enumerate(ours)]
        return held + [SlotView(number) for number in range(len(held), slots)]
    busy = sorted((s for s in statuses if s.busy), key=lambda status: status.task)
    pairs = {status.id: permit for status, permit in zip(busy, ours, strict=False)}
    # Sent, but not in a slot yet, or already out of it: shown in the first boxes that are free.
    starting = iter(ours[len(busy) :])
    row = []
    for status in statuses:
        if status.busy:
            row.append(_busy(status, pairs.get(status.id)))
        elif permit := next(starting, None):
            row.append(_ours(status.id, permit, Phase.STARTING))
        else:
            row.append(SlotView(status.id, model=status.model))
    return row


def _ours(number: int, permit: HeldPermit, phase: Phase) -> SlotView:
    return SlotView(
        number,
        permit.occupant,
        permit.label,
        phase,
        model=permit.model,
        is_revoked=permit.is_revoked,
    )


def _busy(status: SlotStatus, permit: HeldPermit | None) -> SlotView:
    view = SlotView(
        status.id,
        permit.occupant if permit else Occupant.OTHER,
        permit.label if permit else "",
        prompt_tokens=_prompt_tokens(status),
        model=status.model,
        is_revoked=permit is not None and permit.is_revoked,
    )
    decoded, remain = status.decoded or 0, status.remain
    limit = decoded + remain if remain is not None and remain >= 0 else None
    if decoded:
        return replace(
            view,
            phase=Phase.GENERATING,
            generated=decoded,
            limit=limit,
            share=decoded / limit if limit else None,
            cached_share=_cached_share(status),
        )
    # The server does not report the length of the prompt; of our own there is an estimate.
    expected = permit.tokens - limit if permit and limit else 0
    processed = view.prompt_tokens
    share = min(processed / expected, 0.99) if processed is not None and expected > 0 else None
    return replace(view, phase=Phase.PROMPT, share=share)


def _prompt_tokens(status: SlotStatus) -> int | None:
    return None if status.held is None else max(status.held - (status.decoded or 0), 0)


def _cached_share(status: SlotStatus) -> float | None:
    prompt = _prompt_tokens(status)
    if not prompt or status.cached_tokens is None:
        return None
    return min(status.cached_tokens / prompt, 1.0)
