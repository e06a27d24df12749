"""How full a conversation's context is, and what of each prompt came from the cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.chat.conversations.services import Branch
from apps.chat.models import Message, Role
from apps.chat.prompt.context import AFTER_CUT, NEARLY_FULL

SHOWN_TURNS = 40
# How fast a conversation grows is judged by so many of its newest turns.
RECENT_TURNS = 5


@dataclass(frozen=True)
class Turn:
    """An answer of the branch, as the server counted it."""

    answer: int
    number: int
    """Of the answers that were counted, from 1."""
    prompt: int
    cached: int | None
    """None where the server does not report it."""
    completion: int
    cut_before_message: int | None
    lost: int

    @property
    def share(self) -> float | None:
        return None if self.cached is None else self.cached / self.prompt


@dataclass(frozen=True)
class Bar:
    """A turn in the strip, in units of its drawing."""

    turn: Turn
    x: int
    y: int
    height: int


@dataclass(frozen=True)
class Meter:
    """Of the branch that is shown. `context` is that of a slot; None where nobody knows it."""

    turns: Sequence[Turn]
    context: int | None

    @property
    def used(self) -> int:
        """Tokens that the next prompt begins with."""
        return self.turns[-1].prompt + self.turns[-1].completion

    @property
    def share_used(self) -> float | None:
        return min(1.0, self.used / self.context) if self.context else None

    @property
    def filled(self) -> int:
        """Of a bar 100 wide."""
        return round(100 * (self.share_used or 0))

    @property
    def cut_at(self) -> int | None:
        return int(NEARLY_FULL * self.context) if self.context else None

    @property
    def cut_mark(self) -> int:
        return round(100 * NEARLY_FULL)

    @property
    def kept_by_cut(self) -> int | None:
        return int(AFTER_CUT * self.context) if self.context else None

    @property
    def turns_left(self) -> int | None:
        """Turns like the last ones until a cut; None where that cannot be said."""
        recent = self.turns[-RECENT_TURNS - 1 :]
        sizes = [turn.prompt + turn.completion for turn in recent]
        grown = [later - earlier for earlier, later in pairwise(sizes)]
        grown = [step for step in grown if step > 0]
        if self.cut_at is None or not grown:
            return None
        return max(0, int((self.cut_at - self.used) * len(grown) / sum(grown)))

    @property
    def cached_share(self) -> float | None:
        """Of all prompt tokens of those turns of which it is reported; None where of none."""
        told = [(turn.cached, turn.prompt) for turn in self.turns if turn.cached is not None]
        return sum(cached for cached, _ in told) / sum(size for _, size in told) if told else None

    @property
    def newest_first(self) -> Sequence[Turn]:
        return self.turns[: -SHOWN_TURNS - 1 : -1]

    @property
    def bars(self) -> list[Bar]:
        shown = self.turns[-SHOWN_TURNS:]
        heights = [max(1, round(16 * (turn.share or 0))) for turn in shown]
        return [
            Bar(turn, 4 * place, 16 - height, height)
            for place, (turn, height) in enumerate(zip(shown, heights, strict=True))
        ]

    @property
    def width(self) -> int:
        return 4 * len(self.turns[-SHOWN_TURNS:]) - 1


def turns_of(branch: Branch) -> list[Turn]:
    """The answers of a branch that were counted, in order. One query."""
    counted = Message.objects.filter(
        conversation=branch.conversation, role=Role.ASSISTANT, deleted_at=None, prompt_tokens__gt=0
    )
    rows = counted.values_list(
        *(
            "pk",
            "prompt_tokens",
            "cached_tokens",
            "completion_tokens",
            "cut_before_message",
            "reprocessed_tokens",
        )
    )
    there = {pk: rest for pk, *rest in rows}
    path = [pk for pk in branch.path if pk in there]
    return [
        Turn(pk, number, prompt, cached, completion or 0, cut_before_message, lost)
        for number, pk in enumerate(path, 1)
        for prompt, cached, completion, cut_before_message, lost in [there[pk]]
    ]
