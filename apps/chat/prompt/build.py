"""The input of a prompt, read from the database in one place.

Answers, prefill, titles and summaries all start from the same prefix, so the server's prompt cache
serves them all.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from apps.chat.attachments import prompt_files
from apps.chat.models import (
    AnswerRequest,
    AnswerSettings,
    Conversation,
    Message,
    Role,
    SamplingParams,
    SystemPrompt,
    ToolCall,
)
from apps.chat.prompt import branch as branches
from apps.chat.prompt.branch import messages_of_round, split_at_calls
from apps.chat.prompt.messages import CountedPrompt, PromptMessage, PromptSummary
from apps.chat.tools.settings import Offer, offer
from apps.servers import services as llm
from apps.servers.models import Server, Use


@dataclass(frozen=True)
class PromptInput:
    """All that a request needs from the database."""

    conversation: int
    person: int
    server: Server
    model: str
    system_prompt: SystemPrompt | None
    messages: list[PromptMessage]
    counted: CountedPrompt | None
    params: SamplingParams
    title: str
    opening: str
    """The first question."""
    response_format: Mapping[str, Any] | None = None
    answer_start: tuple[str, str] = ("", "")
    """Text and reasoning that this answer begins with, since its last call."""
    continued_text: tuple[str, str] = ("", "")
    """Text and reasoning of the answer that this one continues."""
    previous_calls: tuple[ToolCall, ...] = ()
    """Calls of the answer that this one continues."""
    offer: Offer = field(default_factory=Offer)
    may_call: bool = True
    """False once all rounds are used up: the model has to answer now."""
    ends_thinking: bool = False
    """True for titles and summaries: a thought is ended where it would begin."""
    summaries: Sequence[PromptSummary] = ()
    documents: str = ""
    """Whole documents of the project. They follow the system prompt and never change."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Data URLs of images by the mark that stands for each in its message."""


def for_answer(answer_id: int) -> PromptInput:
    """Read the input for an answer.

    Raises:
        NoServer: no server is set, and there is no default.
    """
    answer = Message.objects.select_related(
        "parent", "conversation__server", "conversation__system_prompt"
    ).get(pk=answer_id)
    request, conversation = answer.answer_request, answer.conversation
    if request.settings is not None:
        conversation = _with_settings(conversation, request.settings)
    calls = tuple(answer.tool_calls.all()) if request.continues is not None else ()
    continued = _continued_text(answer, request.continues, calls)
    *rounds, last = split_at_calls(*continued, calls)
    tools = request.tools or conversation.tool_settings
    prompt_input = _read(
        conversation,
        branches.branch_before(answer),
        params=conversation.sampling.updated_by(request.params),
        response_format=request.response_format or conversation.response_format or None,
        answer_start=(last.text, last.reasoning),
        continued_text=continued,
        previous_calls=calls,
        offer=offer(tools, conversation.owner_id),
    )
    prompt_input.messages.extend(m for part in rounds for m in messages_of_round(part))
    return prompt_input


def for_question(
    question: Message, leaf: Message | None, request: AnswerRequest | None
) -> PromptInput:
    """Read the input for the answer to a question that is not saved yet.

    Args:
        leaf: the answer it follows, if any.

    Raises:
        NoServer: no server is set, and there is no default.
    """
    conversation, request = question.conversation, request or AnswerRequest()
    tools = request.tools or conversation.tool_settings
    return _read(
        conversation,
        [*branches.branch_to(leaf), question],
        params=conversation.sampling.updated_by(request.params),
        response_format=request.response_format or conversation.response_format or None,
        offer=offer(tools, conversation.owner_id),
    )


def for_next(conversation: Conversation, question: str, leaf: Message | None = None) -> PromptInput:
    """Read the input for the next answer, if this were the question.

    Args:
        leaf: the answer it follows, by default the newest of the active branch.

    Raises:
        NoServer: no server is set, and there is no default.
    """
    return _read(
        conversation,
        [
            *branches.branch_to(leaf or conversation.active_leaf),
            Message(pk=0, role=Role.USER, content=question),
        ],
        params=conversation.sampling,
        response_format=conversation.response_format or None,
        offer=offer(conversation.tool_settings, conversation.owner_id),
    )


def side_request(
    conversation: Conversation, question: str, *, max_tokens: int, leaf: Message | None = None
) -> PromptInput:
    """Read the input for a question that no person asked. Its prefix is the conversation's own.

    Raises:
        NoServer: no server is set, and there is no default.
    """
    prompt_input = for_next(conversation, question, leaf)
    changes: dict[str, Any] = {"stop": None, "max_tokens": max_tokens}
    # With a format no tools are offered, here neither: their definitions stand at the start.
    tools = prompt_input.offer if prompt_input.response_format is None else Offer()
    return replace(
        prompt_input,
        params=prompt_input.params.model_copy(update=changes),
        offer=tools,
        response_format=None,
        may_call=False,
        ends_thinking=True,
    )


def chosen_model(conversation: Conversation) -> tuple[Server, str]:
    """Return the server of a conversation and the model it is set to, or "".

    Raises:
        NoServer: no server is set, and there is no default.
    """
    if conversation.server is not None:
        return conversation.server, conversation.model
    default = llm.known_default(Use.CHAT)
    # Until the server was checked, its first model is not known.
    named = default.model if default.model in default.server.model_ids else ""
    return default.server, conversation.model or named


def _with_settings(conversation: Conversation, settings: AnswerSettings) -> Conversation:
    """Return a copy of the conversation, never saved, with the settings of one answer."""
    prompts = SystemPrompt.objects.filter(owner_id=conversation.owner_id)
    changed = copy(conversation)
    changed.server = Server.objects.filter(pk=settings.server or 0).first()
    changed.model = settings.model
    changed.system_prompt = prompts.filter(pk=settings.system_prompt or 0).first()
    changed.params = settings.params.to_json()
    return changed


def _read(conversation: Conversation, branch: Sequence[Message], **rest: Any) -> PromptInput:
    server, model = chosen_model(conversation)
    files = prompt_files.files_of(branch)
    return PromptInput(
        conversation=conversation.pk,
        person=conversation.owner_id,
        server=server,
        model=model,
        system_prompt=conversation.system_prompt,
        messages=branches.prompt_messages(branch, files),
        images=files.images,
        documents=conversation.documents.text if conversation.documents else "",
        counted=branches.newest_count(branch),
        title=conversation.title,
        opening=branch[0].content,
        summaries=branches.summaries_of(branch),
        **rest,
    )


def _continued_text(
    answer: Message, continues: int | None, calls: Sequence[ToolCall]
) -> tuple[str, str]:
    """Return text and reasoning of the answer that this one continues, a sibling of it.

    Trailing white space is left out: templates strip it, and the model writes it again.
    """
    if continues is None:
        return "", ""
    earlier = Message.objects.answers().filter(pk=continues, parent_id=answer.parent_id).first()
    if earlier is None:
        return "", ""
    end = max((call.text_to for call in calls), default=0)
    return earlier.content[: max(len(earlier.content.rstrip()), end)], earlier.reasoning
