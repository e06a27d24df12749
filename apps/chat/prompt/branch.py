"""A branch as messages of the prompt, and answers split at their tool calls. Synchronous."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from apps.chat.attachments.prompt_files import PromptFiles
from apps.chat.knowledge.passages import Findings, prompt_block
from apps.chat.models import NOT_RUN, Message, Role, Summary, SummaryState, ToolCall
from apps.chat.prompt.messages import CountedPrompt, PromptCall, PromptMessage, PromptSummary

UNSAVED = 0
"""The ID of the question in a prompt that is made before the question is saved."""

BETWEEN = "\n\n"
"""Separates two rounds in the text of an answer. The model did not write it."""


def branch_before(message: Message) -> list[Message]:
    """Return the messages before a message, from the root to its parent."""
    question = message.parent
    if question is not None and question.parent_id is None:
        return [question]
    parents: dict[int, int | None] = dict(
        Message.objects.filter(conversation_id=message.conversation_id).values_list(
            "pk", "parent_id"
        )
    )
    path: list[int] = []
    current = message.parent_id
    while current is not None:
        path.append(current)
        current = parents[current]
    by_id = Message.objects.in_bulk(path)
    return [by_id[pk] for pk in reversed(path)]


def branch_to(leaf: Message | None) -> list[Message]:
    """Return the messages from the root to a message; [] without one."""
    return [] if leaf is None else [*branch_before(leaf), leaf]


def prompt_messages(branch: Sequence[Message], files: PromptFiles) -> list[PromptMessage]:
    """Return the messages of a branch as the prompt has them, with files and tool calls."""
    calls: dict[int, list[ToolCall]] = defaultdict(list)
    if answers := [message.pk for message in branch if message.role == Role.ASSISTANT]:
        for call in ToolCall.objects.filter(answer__in=answers):
            calls[call.answer_id].append(call)
    messages: list[PromptMessage] = []
    for message in branch:
        if message.pk in calls:
            messages += messages_of_answer(message, calls[message.pk])
        else:
            messages.append(
                PromptMessage(
                    message.pk or UNSAVED,
                    message.role,
                    files.texts.get(message.pk, "") + _passages(message) + message.content,
                    message.reasoning,
                    message.pinned,
                    image_tokens=files.image_tokens.get(message.pk, 0),
                )
            )
    return messages


def _passages(message: Message) -> str:
    """Return what was found for a question; "" for an answer."""
    return prompt_block(Findings.from_json(message.passages).passages) if message.passages else ""


def newest_count(branch: Sequence[Message]) -> CountedPrompt | None:
    """Return what the server counted for the newest answer that has numbers."""
    for message in reversed(branch):
        if message.role == Role.ASSISTANT and message.prompt_tokens:
            prefix = message.sent_prefix
            return CountedPrompt(
                tokens=message.prompt_tokens + (message.completion_tokens or 0),
                upto=message.pk,
                cut_before_message=message.cut_before_message,
                front_bytes=prefix.front_bytes,
                left_out=prefix.left_out,
            )
    return None


def summaries_of(branch: Sequence[Message]) -> list[PromptSummary]:
    """Return the summaries of beginnings of a branch. No query while nothing was ever cut."""
    if all(message.cut_before_message is None for message in branch):
        return []
    ready = Summary.objects.filter(
        upto__conversation=branch[0].conversation_id, state=SummaryState.READY
    )
    ids = {message.pk for message in branch}
    return [PromptSummary(s.text, s.upto_id, s.pk) for s in ready if s.upto_id in ids]


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
