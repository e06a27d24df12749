"""Thinking: its setting, the fields that carry it, and answers with a thought. The door."""

from apps.llm.thinking.completion import Thinking, describe_missing_answer, is_all_thought
from apps.llm.thinking.request import (
    END_TOKENS,
    ENDED_BUDGET,
    NOT_REPORTED,
    THINKING_TOKENS,
    ThinkingPlan,
    ThinkingSupport,
    plan_thinking,
)
from apps.llm.thinking.setting import (
    EXPECTED,
    MAX_BUDGET,
    Effort,
    StoredThinking,
    ThinkingSetting,
    label_of,
    parse_thinking,
    thinking_choices,
)

__all__ = [
    "ENDED_BUDGET",
    "END_TOKENS",
    "EXPECTED",
    "MAX_BUDGET",
    "NOT_REPORTED",
    "THINKING_TOKENS",
    "Effort",
    "StoredThinking",
    "Thinking",
    "ThinkingPlan",
    "ThinkingSetting",
    "ThinkingSupport",
    "describe_missing_answer",
    "is_all_thought",
    "label_of",
    "parse_thinking",
    "plan_thinking",
    "thinking_choices",
]
