"""Tool calls and results as messages of the prompt, and as parts of an answer on the page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from apps.chat.models import NOT_RUN, Message, ToolCall
from apps.chat.prompt.messages import PromptCall, PromptMessage

BETWEEN = "\n\n"
"""Separates two rounds in the text of an answer. The model did not write it."""


@dataclass(frozen=True)
class AnswerPart:
    """A stretch of an answer's text, and the calls that follow it."""

    text: str
    reasoning: str
    calls: Sequence[ToolCall]


def split_at_calls(content: str, reasoning: str, calls: Iterable[ToolCall]) -> list[AnswerPart]:
    """Split an answer's text at its calls. The last part has no calls."""
    parts: list[AnswerPart] = []
    text_from = reasoning_from = 0
    for _, group in groupby(calls, key=lambda call: call.round):
        round_calls = list(group)
        first = round_calls[0]
        text = content[text_from : first.text_to]
        thought = reasoning[reasoning_from : first.reasoning_to]
        parts.append(AnswerPart(_own(text, text_from), _own(thought, reasoning_from), round_calls))
        text_from, reasoning_from = first.text_to, first.reasoning_to
    text, thought = content[text_from:], reasoning[reasoning_from:]
    parts.append(AnswerPart(_own(text, text_from), _own(thought, reasoning_from), ()))
    return parts


def _own(piece: str, begins_at: int) -> str:
    return piece.removeprefix(BETWEEN) if begins_at else piece


def messages_of_answer(answer: Message, calls: Sequence[ToolCall]) -> list[PromptMessage]:
    """Return an answer as its model wrote it, with results. The last message has its ID."""
    *rounds, last = split_at_calls(answer.content, answer.reasoning, calls)
    messages = [message for part in rounds for message in messages_of_round(part)]
    own = PromptMessage(answer.pk, answer.role, last.text, last.reasoning, answer.pinned)
    return [*messages, own]


def messages_of_round(part: AnswerPart) -> list[PromptMessage]:
    """Return the message with the calls and one for each result, with negative IDs of the calls."""
    calls = tuple(PromptCall(call.call_id, call.name, call.arguments) for call in part.calls)
    first = PromptMessage(-part.calls[0].pk, "assistant", part.text, part.reasoning, calls=calls)
    results = (
        PromptMessage(-call.pk, "tool", call.result or NOT_RUN, call_id=call.call_id)
        for call in part.calls
    )
    return [first, *results]
