"""Context usage of a conversation, and the cached share of each prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.chat.conversations.branch_view import Branch
from apps.chat.models import Message, Role
from apps.chat.prompt.context import AFTER_CUT, NEARLY_FULL

SHOWN_TURNS = 40
# The growth of a conversation is measured on this many of its newest turns.
RECENT_TURNS = 5


@dataclass(frozen=True)
class AnswerUsage:
    """Tokens of one answer, as the server counted them."""

    answer: int
    number: int
    """Position among the answers that were counted, from 1."""
    prompt: int
    cached: int | None
    """None where the server does not report it."""
    completion: int
    cut_before_message: int | None
    reprocessed: int

    @property
    def share(self) -> float | None:
        return None if self.cached is None else self.cached / self.prompt


@dataclass(frozen=True)
class Bar:
    """One answer in the bar chart, in units of the drawing."""

    turn: AnswerUsage
    x: int
    y: int
    height: int


@dataclass(frozen=True)
class ContextMeter:
    """Context usage of the active branch. `context` is tokens per slot; None if unknown."""

    turns: Sequence[AnswerUsage]
    context: int | None

    @property
    def used(self) -> int:
        """Tokens of the newest prompt and answer, which the next prompt begins with."""
        return self.turns[-1].prompt + self.turns[-1].completion

    @property
    def share_used(self) -> float | None:
        return min(1.0, self.used / self.context) if self.context else None

    @property
    def filled(self) -> int:
        """Filled part of a bar 100 wide."""
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
        """Estimated number of turns until a cut; None if unknown."""
        recent = self.turns[-RECENT_TURNS - 1 :]
        sizes = [turn.prompt + turn.completion for turn in recent]
        grown = [later - earlier for earlier, later in pairwise(sizes)]
        grown = [step for step in grown if step > 0]
        if self.cut_at is None or not grown:
            return None
        return max(0, int((self.cut_at - self.used) * len(grown) / sum(grown)))

    @property
    def cached_share(self) -> float | None:
        """Share of prompt tokens over all turns that report it; None if none does."""
        told = [(turn.cached, turn.prompt) for turn in self.turns if turn.cached is not None]
        return sum(cached for cached, _ in told) / sum(size for _, size in told) if told else None

    @property
    def newest_first(self) -> Sequence[AnswerUsage]:
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


def measure(branch: Branch) -> list[AnswerUsage]:
    """Return the answers of a branch that have token counts, in order. One query."""
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
        AnswerUsage(pk, number, prompt, cached, completion or 0, cut_before_message, reprocessed)
        for number, pk in enumerate(path, 1)
        for prompt, cached, completion, cut_before_message, reprocessed in [there[pk]]
    ]
