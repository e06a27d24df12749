"""The branch of a message, read from the database for its prompt. Synchronous."""

from collections import defaultdict
from collections.abc import Sequence

from apps.chat.attachments.prompt_files import PromptFiles
from apps.chat.models import Message, Role, Summary, SummaryState, ToolCall
from apps.chat.prompt.call_messages import messages_of_answer
from apps.chat.prompt.messages import CountedPrompt, PromptMessage, PromptSummary


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
                    message.pk,
                    message.role,
                    files.texts.get(message.pk, "") + message.content,
                    message.reasoning,
                    message.pinned,
                    image_tokens=files.image_tokens.get(message.pk, 0),
                )
            )
    return messages


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
