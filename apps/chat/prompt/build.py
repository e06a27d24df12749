"""From a conversation to the request that is sent: what `context` needs, fetched and put together.

Answers, reading ahead, titles and summaries all ask with the same prefix: it is made here alone.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, cast

from apps.chat.models import (
    Conversation,
    Message,
    Role,
    Summary,
    SummaryState,
    SystemPrompt,
    ToolCall,
)
from apps.chat.prompt import attachments, context
from apps.chat.tools import history
from apps.chat.tools.settings import Offer, offer
from apps.llm.client import ChatRequest
from apps.llm.client import Message as LLMMessage
from apps.servers import services as llm
from apps.servers.models import Server, Use


class Head(TypedDict, total=False):
    """What a prompt began with, beside the system prompt. Kept with the answer: see `prefix`."""

    tools: str
    """A hash of the tools' definitions."""
    summary: int
    pinned: list[int]
    front: int
    """Bytes of summary and pinned turns together."""
    left_out: list[int]
    """Turns of tools whose results had to make room."""


class Settings(TypedDict):
    """Of whom an answer was asked, where that is not what its conversation is set to."""

    server: int | None
    model: str
    system_prompt: int | None
    params: dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """All that a request needs from the database."""

    conversation: int
    person: int
    server: Server
    model: str
    system_prompt: SystemPrompt | None
    turns: list[context.Turn]
    counted: context.Counted | None
    params: dict[str, Any]
    title: str
    opening: str
    """The first question."""
    response_format: dict[str, Any] | None = None
    prefix: tuple[str, str] = ("", "")
    """Text and reasoning that this answer goes on from, since its last call if it made any."""
    said: tuple[str, str] = ("", "")
    """All of the answer that this one continues."""
    called: tuple[ToolCall, ...] = ()
    """What that had called."""
    offer: Offer = field(default_factory=Offer)
    may_call: bool = True
    """False once all rounds are used up: the model has to answer now."""
    summaries: Sequence[context.Summary] = ()
    """Of beginnings of this branch."""
    images: dict[str, str] = field(default_factory=dict)
    """Pictures of the questions, by the mark that stands for each in its turn."""


@dataclass(frozen=True)
class Prepared:
    """A request, and what is known of it beforehand."""

    target: llm.Target
    request: ChatRequest
    prompt_tokens: int
    """As far as can be estimated."""
    cut_before_message: int | None
    head: Head

    @property
    def tokens(self) -> int:
        """What prompt and answer may come to, for admission: the prompt is an estimate."""
        return self.prompt_tokens + (self.request.max_tokens or context.ANSWER_TOKENS)


def for_answer(answer: Message) -> Ask:
    """What an answer is asked with.

    Raises:
        NoServer: there is no server to ask.
    """
    conversation = answer.conversation
    if "as" in answer.request:
        conversation = _as_asked(conversation, answer.request["as"])
    called = tuple(answer.tool_calls.all()) if "continues" in answer.request else ()
    said = _continued(answer, called)
    *rounds, last = history.parts(*said, called)
    ask = _ask(
        conversation,
        branch_before(answer),
        params=conversation.params | answer.request.get("params", {}),
        response_format=answer.request.get("response_format")
        or conversation.response_format
        or None,
        prefix=(last.text, last.reasoning),
        said=said,
        called=called,
        offer=offer(answer.request.get("tools", conversation.tools), conversation.owner_id),
    )
    ask.turns.extend(turn for part in rounds for turn in history.of_round(part))
    return ask


def for_next(conversation: Conversation, question: str, leaf: Message | None = None) -> Ask:
    """What the next answer would be asked with, if this were the question.

    Args:
        leaf: the answer it follows, by default the newest of the branch that is shown.

    Raises:
        NoServer: there is no server to ask.
    """
    leaf = leaf or conversation.active_leaf
    branch = [] if leaf is None else [*branch_before(leaf), leaf]
    asked = Message(pk=0, role=Role.USER, content=question)
    tools = offer(conversation.tools, conversation.owner_id)
    return _ask(
        conversation,
        [*branch, asked],
        params=conversation.params,
        response_format=conversation.response_format or None,
        offer=tools,
    )


def aside(
    conversation: Conversation, question: str, *, max_tokens: int, leaf: Message | None = None
) -> Ask:
    """A question of the page itself. All before it stands as it would before a person's question.

    Raises:
        NoServer: there is no server to ask.
    """
    ask = for_next(conversation, question, leaf)
    params = {name: value for name, value in ask.params.items() if name != "stop"}
    params["max_tokens"] = max_tokens
    if ask.server.facts_of(ask.model).reasoning:
        # Ends thinking where it would begin. Switching it off would change some templates' start.
        params["reasoning_budget_tokens"] = 0
    # With a format no tools are offered, here neither: their definitions stand at the start.
    tools = ask.offer if ask.response_format is None else Offer()
    return replace(ask, params=params, offer=tools, response_format=None, may_call=False)


def prepare(ask: Ask, server: Server, *, limit: int | None = None) -> Prepared:
    """The request itself.

    Args:
        server: the server with fresh facts.
        limit: tokens a slot holds, as the server said when it found the prompt too long.
    """
    target = llm.choose_target(server, ask.model, Use.CHAT)
    size = limit or server.context_of(target.model)
    abilities = server.facts_of(target.model).abilities
    with_tools = takes_tools(server, target.model)
    offered = with_tools and ask.response_format is None
    prompt = context.build(
        ask.system_prompt.text if ask.system_prompt else None,
        ask.turns,
        context=size,
        counted=ask.counted,
        summaries=ask.summaries,
        keep_reasoning=bool(abilities.get("preserve_reasoning")),
        must_cut=limit is not None,
        with_tools=with_tools,
        definitions=ask.offer.size if offered else 0,
    )
    params = dict(ask.params)
    max_tokens = answer_limit(server, target.model, params.pop("max_tokens", None))
    if (
        limit is not None
        and not server.continues_messages
        and prompt.tokens + (max_tokens or 0) > limit
    ):
        max_tokens = (
            None  # it counts the answer in, and has just refused prompt and answer together
        )
    messages = [_with_images(message, ask.images) for message in prompt.messages]
    text, reasoning = ask.prefix
    if text:
        messages.append({"role": "assistant", "content": text})
        if reasoning:  # no server takes a begun answer while thinking is on; it has thought already
            thinking = {"enable_thinking": False}
            params["chat_template_kwargs"] = params.get("chat_template_kwargs", {}) | thinking
    request = ChatRequest(target.model, messages, max_tokens, params, ask.response_format)
    if offered and ask.offer.tools:
        request = replace(
            request,
            tools=ask.offer.definitions(),
            tool_choice="" if ask.may_call else "none",
            parallel_tool_calls=ask.offer.parallel,
        )
    return Prepared(
        target, request, prompt.tokens, prompt.cut_before_message, _head(request, prompt)
    )


def answer_limit(server: Server, model: str, wanted: int | None) -> int | None:
    """The `max_tokens` that is sent to a server; None: none.

    llama.cpp ends an answer where its slot does. Others count `max_tokens` into what has to fit
    and refuse the request, so they are sent none that nobody asked for.
    """
    return context.answer_limit(
        wanted,
        context=server.context_of(model) if server.continues_messages else None,
        pool=server.pool(model),
        slots=server.slots_of(model),
    )


def _head(request: ChatRequest, prompt: context.Prompt) -> Head:
    head, front = Head(), prompt.front
    if request.tools:
        definitions = json.dumps(request.tools, sort_keys=True).encode()
        head["tools"] = hashlib.sha256(definitions).hexdigest()[:16]
    if front.summary is not None:
        head["summary"] = front.summary.id
    if front.pinned:
        head["pinned"] = [turn.id for turn in front.pinned if turn.pinned]
    if front.size:
        head["front"] = front.size
    if prompt.left_out:
        head["left_out"] = sorted(prompt.left_out)
    return head


def takes_tools(server: Server, model: str) -> bool:
    """False where the model's chat template knows no tools. Who does not say may know them."""
    return server.facts_of(model).abilities.get("tools") is not False


def chosen(conversation: Conversation) -> tuple[Server, str]:
    """The server that answers in a conversation and the model it was set to, or "".

    Raises:
        NoServer: none was chosen and there is no default.
    """
    if conversation.server is not None:
        return conversation.server, conversation.model
    default = llm.default_target(Use.CHAT)
    # While nobody has looked at the server, its first model is not known.
    named = default.model if default.model in default.server.model_ids else ""
    return default.server, conversation.model or named


def branch_before(message: Message) -> list[Message]:
    """The messages a message answers, from the root on."""
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
    found = Message.objects.in_bulk(path)
    return [found[pk] for pk in reversed(path)]


def _as_asked(conversation: Conversation, settings: Settings) -> Conversation:
    """The conversation as it was set for this one answer: a copy, never saved."""
    prompts = SystemPrompt.objects.filter(owner_id=conversation.owner_id)
    asked = copy(conversation)
    asked.server = Server.objects.filter(pk=settings["server"] or 0).first()
    asked.model = settings["model"]
    asked.system_prompt = prompts.filter(pk=settings["system_prompt"] or 0).first()
    asked.params = settings["params"]
    return asked


def _ask(conversation: Conversation, branch: Sequence[Message], **rest: Any) -> Ask:
    server, model = chosen(conversation)
    files = attachments.sent_with(branch)
    return Ask(
        conversation=conversation.pk,
        person=conversation.owner_id,
        server=server,
        model=model,
        system_prompt=conversation.system_prompt,
        turns=_turns(branch, files),
        images=files.images,
        counted=_counted(branch),
        title=conversation.title,
        opening=branch[0].content,
        summaries=_summaries(branch),
        **rest,
    )


def _turns(branch: Sequence[Message], files: attachments.Sent) -> list[context.Turn]:
    calls: dict[int, list[ToolCall]] = defaultdict(list)
    if answers := [message.pk for message in branch if message.role == Role.ASSISTANT]:
        for call in ToolCall.objects.filter(answer__in=answers):
            calls[call.answer_id].append(call)
    turns: list[context.Turn] = []
    for m in branch:
        if m.pk in calls:
            turns += history.turns(m, calls[m.pk])
        else:
            text = files.texts.get(m.pk, "") + m.content
            shown = files.image_tokens.get(m.pk, 0)
            turns.append(
                context.Turn(m.pk, m.role, text, m.reasoning, m.pinned, image_tokens=shown)
            )
    return turns


def _with_images(message: LLMMessage, images: dict[str, str]) -> LLMMessage:
    """The message with its pictures where their marks stand, as the OpenAI API wants them."""
    if not images or not any(mark in message["content"] for mark in images):
        return message
    parts: list[dict[str, Any]] = []
    for text in re.split(f"({'|'.join(map(re.escape, images))})", message["content"]):
        if text in images:
            parts.append({"type": "image_url", "image_url": {"url": images[text]}})
        elif text:
            parts.append({"type": "text", "text": text})
    return cast(LLMMessage, {**message, "content": parts})


def _counted(branch: Sequence[Message]) -> context.Counted | None:
    for message in reversed(branch):
        if message.role == Role.ASSISTANT and message.prompt_tokens:
            tokens = message.prompt_tokens + (message.completion_tokens or 0)
            front = message.prompt_prefix.get("front", 0)
            left_out = frozenset(message.prompt_prefix.get("left_out", ()))
            return context.Counted(tokens, message.pk, message.cut_before_message, front, left_out)
    return None


def _summaries(branch: Sequence[Message]) -> list[context.Summary]:
    if all(message.cut_before_message is None for message in branch):
        return []  # nothing has ever been cut here
    found = Summary.objects.filter(
        upto__conversation=branch[0].conversation_id, state=SummaryState.READY
    )
    there = {message.pk for message in branch}
    return [context.Summary(s.text, s.upto_id, s.pk) for s in found if s.upto_id in there]


def _continued(answer: Message, called: Sequence[ToolCall]) -> tuple[str, str]:
    """Text and reasoning that an answer goes on from: of a sibling, so of nobody else's.

    Without the white space that it ended with: templates take it away, and it is written again.
    """
    if "continues" not in answer.request:
        return "", ""
    earlier = (
        Message.objects.answers()
        .filter(pk=answer.request.get("continues"), parent_id=answer.parent_id)
        .first()
    )
    if earlier is None:
        return "", ""
    said_before_calls = max((call.text_to for call in called), default=0)
    end = max(len(earlier.content.rstrip()), said_before_calls)
    return earlier.content[:end], earlier.reasoning
