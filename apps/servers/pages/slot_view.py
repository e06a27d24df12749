"""The slots of a server as a row of boxes: who is in each, and how far it is. Pure.

A server says that a slot is busy, never for whom. The workbench knows which requests it has sent,
not where they went. Both start their work in the order they came, so the oldest of ours is shown
in the box with the oldest task, and busy boxes beyond what we hold belong to other programs: the
counts are right, and which box is whose is a good guess.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Occupant(StrEnum):
    IDLE = "idle"
    CHAT = "chat"
    """A person waits: chat, a preview, a single prediction."""
    JOB = "job"
    OTHER = "other"
    """Other program: the slot is busy and we did not do it."""


class Phase(StrEnum):
    NONE = ""
    STARTING = "starting"
    """Sent, and not in a slot yet as far as the server shows."""
    SENT = "sent"
    """At work where the server does not show its slots."""
    READING = "reading"
    WRITING = "writing"


@dataclass(frozen=True)
class Reading:
    """What the server says of one slot."""

    number: int
    busy: bool = False
    task: int = 0
    """Rises with every request the server takes."""
    held: int | None = None
    """Tokens in the slot so far: of the prompt while it is read, of prompt and answer later."""
    cached: int | None = None
    decoded: int | None = None
    remain: int | None = None
    """Tokens it may still write; -1 or None where nobody set an end."""
    model: str = ""


@dataclass(frozen=True)
class Holding:
    """A permit of ours."""

    occupant: Occupant
    label: str = ""
    tokens: int = 0
    """Reserved: the estimated prompt plus max_tokens."""
    started: float = 0.0
    model: str = ""


@dataclass(frozen=True)
class Box:
    """One slot as it is drawn. Shares are between 0 and 1, None where nobody knows."""

    number: int
    occupant: Occupant = Occupant.IDLE
    label: str = ""
    phase: Phase = Phase.NONE
    read: int | None = None
    """Tokens of the prompt, as far as it was read."""
    written: int | None = None
    at_most: int | None = None
    share: float | None = None
    """How much of the prompt is read, or of the answer's limit is written."""
    cached_share: float | None = None
    model: str = ""

    @property
    def who(self) -> str:
        names = {Occupant.IDLE: "Free", Occupant.CHAT: "Chat", Occupant.JOB: "Job"}
        return self.label or names.get(self.occupant, "Other program")

    @property
    def letter(self) -> str:
        """For a box too small for words."""
        letters = {Occupant.IDLE: "", Occupant.OTHER: "?"}
        return letters.get(self.occupant, self.who[0].upper())

    @property
    def details(self) -> list[str]:
        """What it does, one short phrase for each thing known: "340 of 800 tokens"."""
        match self.phase:
            case Phase.STARTING:
                return ["starting"]
            case Phase.SENT:
                return ["processing"]
            case Phase.READING:
                known = "" if self.share is None else f", about {self.share * 100:.0f}%"
                phrases = [f"processing prompt{known}"]
                return [*phrases, f"{self.read:,} prompt tokens"] if self.read else phrases
            case Phase.WRITING:
                limit = f" of {self.at_most:,}" if self.at_most else ""
                phrases = [f"{self.written or 0:,}{limit} tokens"]
                if self.cached_share is not None:
                    phrases.append(f"{self.cached_share * 100:.0f}% cached")
                return phrases
        return []

    @property
    def sentence(self) -> str:
        """All of it, for those who cannot see the box."""
        return f"Slot {self.number}: " + ", ".join([self.who, *self.details])

    @property
    def level(self) -> int | None:
        """The share in twentieths: a height for the bar that a class can carry."""
        return None if self.share is None else round(self.share * 20)


def boxes(readings: Sequence[Reading], holdings: Iterable[Holding], width: int) -> list[Box]:
    """One box per slot, in the server's order.

    Args:
        readings: what the server shows; empty where it shows nothing, and then the boxes are as
            many as `width` and hold what we sent.
    """
    ours = sorted(holdings, key=lambda holding: holding.started)
    if not readings:
        held = [_ours(number, holding, Phase.SENT) for number, holding in enumerate(ours)]
        return held + [Box(number) for number in range(len(held), width)]
    busy = sorted((r for r in readings if r.busy), key=lambda reading: reading.task)
    pairs = {reading.number: holding for reading, holding in zip(busy, ours, strict=False)}
    # Sent, but not in a slot yet, or already out of it: shown in the first boxes that are free.
    starting = iter(ours[len(busy) :])
    row = []
    for reading in readings:
        if reading.busy:
            row.append(_working(reading, pairs.get(reading.number)))
        elif holding := next(starting, None):
            row.append(_ours(reading.number, holding, Phase.STARTING))
        else:
            row.append(Box(reading.number, model=reading.model))
    return row


def _ours(number: int, holding: Holding, phase: Phase) -> Box:
    return Box(number, holding.occupant, holding.label, phase, model=holding.model)


def _working(reading: Reading, holding: Holding | None) -> Box:
    occupant = holding.occupant if holding else Occupant.OTHER
    label = holding.label if holding else ""
    decoded, remain = reading.decoded or 0, reading.remain
    limit = decoded + remain if remain is not None and remain >= 0 else None
    prompt = None if reading.held is None else max(reading.held - decoded, 0)
    box = Box(reading.number, occupant, label, read=prompt, model=reading.model)
    if decoded:
        return replace(
            box,
            phase=Phase.WRITING,
            written=decoded,
            at_most=limit,
            share=decoded / limit if limit else None,
            cached_share=min(reading.cached / prompt, 1.0)
            if prompt and reading.cached is not None
            else None,
        )
    # The server does not say how long the prompt is that it reads; of our own we have an estimate.
    expected = holding.tokens - limit if holding and limit else 0
    return replace(
        box,
        phase=Phase.READING,
        share=min(prompt / expected, 0.99) if prompt is not None and expected > 0 else None,
    )
