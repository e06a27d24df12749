"""What a server is for, and what that asks of its slots (pure)."""

from dataclasses import dataclass
from enum import StrEnum

from apps.tuning.errors import PlanError


class Use(StrEnum):
    CHAT = "chat"
    CLASSIFICATION = "classification"
    GENERATION = "generation"
    AGENTS = "agents"
    EMBEDDINGS = "embeddings"
    DECISIONS = "decisions"
    MIX = "mix"


@dataclass(frozen=True, slots=True)
class Needs:
    slots: int
    context: int
    """Tokens of a slot."""
    why: str
    """Ends the sentence on the slots."""
    tools: bool = False
    jobs: bool = False
    whole_prompt_in_ubatch: bool = False
    unified: bool = False


NEEDS = {
    Use.CHAT: Needs(2, 16_384, "for conversations, one beside another", tools=True),
    Use.CLASSIFICATION: Needs(8, 2048, "for many short texts at once", jobs=True),
    Use.GENERATION: Needs(8, 4096, "for rows, written side by side", jobs=True),
    Use.AGENTS: Needs(
        2, 65_536, "for long histories of tool calls; they share one pool", tools=True, unified=True
    ),
    Use.EMBEDDINGS: Needs(
        4, 2048, "for texts, embedded side by side", jobs=True, whole_prompt_in_ubatch=True
    ),
    Use.DECISIONS: Needs(
        4, 4096, "for questions on one text each", jobs=True, whole_prompt_in_ubatch=True
    ),
    Use.MIX: Needs(4, 8192, "for conversations beside jobs of many rows", tools=True, jobs=True),
}


def find_use(name: str) -> Use:
    """Return the use of this name.

    Raises:
        PlanError: there is none.
    """
    try:
        return Use(name)
    except ValueError as error:
        raise PlanError(f"“{name}” is no use. Choose from: {', '.join(Use)}.") from error
