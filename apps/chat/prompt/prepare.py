"""The request that is sent for a prompt input, with what is known of it beforehand."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from apps.chat.models import PromptPrefix
from apps.chat.prompt import context
from apps.chat.prompt.build import PromptInput
from apps.chat.prompt.messages import with_images
from apps.chat.prompt.thinking import SWITCHES, setting_of, thinking_fields, without_thinking
from apps.llm.client import ChatRequest
from apps.llm.client import Message as LLMMessage
from apps.servers import services as llm
from apps.servers.models import Kind, Server, Use

# Tokens that an answer is assumed to need if nothing limits it: for admission, never sent.
ANSWER_TOKENS = 2048
# Share of a slot for the answer if slots share one cache: the rest is for the prompt.
SHARE_OF_SLOT = 0.75


@dataclass(frozen=True)
class PreparedRequest:
    target: llm.Target
    request: ChatRequest
    prompt_tokens: int
    """An estimate."""
    cut_before_message: int | None
    prefix: PromptPrefix
    answer_tokens: int | None = None
    """Max tokens of the answer itself, where those of the request include a thought."""

    @property
    def max_tokens(self) -> int | None:
        """Limit of the answer without its thought; None: the server's."""
        return self.answer_tokens or self.request.max_tokens

    @property
    def tokens(self) -> int:
        """The most that prompt and answer should need, for admission: an estimate."""
        return self.prompt_tokens + (self.request.max_tokens or ANSWER_TOKENS)

    def without_thinking(self) -> "PreparedRequest":
        """Return the request that answers at once, after a thought that did not end."""
        support = self.target.server.facts_of(self.target.model).thinking
        return replace(self, request=without_thinking(self.request, support), answer_tokens=None)

    def resumed_after(self, text: str, tokens: int) -> "PreparedRequest":
        """Return the request for the rest of an answer that broke off after `text`."""
        request = self.request.continued_from(text, tokens)
        return replace(self, request=request, prompt_tokens=self.prompt_tokens + tokens)


def prepare(
    prompt_input: PromptInput, server: Server, *, limit: int | None = None
) -> PreparedRequest:
    """Return the request.

    Args:
        server: the server with fresh facts.
        limit: tokens per slot, as the server said when it found the prompt too long.
    """
    target = llm.choose_target(server, prompt_input.model, Use.CHAT)
    with_tools = supports_tools(server, target.model)
    offered = with_tools and prompt_input.response_format is None
    prompt = _build_prompt(prompt_input, target, limit=limit, offered=offered)
    params, thought_tokens = _request_params(prompt_input, target, limit)
    wanted = params.pop("max_tokens", None)
    max_tokens = answer_limit(server, target.model, wanted and wanted + thought_tokens)
    if limit is not None and not server.continues_messages:
        # Such a server counts the answer in, and has just refused prompt and answer together.
        max_tokens = max_tokens if prompt.tokens + (max_tokens or 0) <= limit else None
    messages = [with_images(message, prompt_input.images) for message in prompt.messages]
    _append_answer_start(messages, params, prompt_input.answer_start)
    response_format = prompt_input.response_format
    request = ChatRequest(
        target.model,
        messages,
        max_tokens,
        params,
        response_format and dict(response_format),
        session=f"workbench-chat-{prompt_input.conversation}" if server.kind == Kind.OLLA else "",
    )
    if offered and prompt_input.offer.tools:
        request = _with_tools(request, prompt_input)
    return PreparedRequest(
        target,
        request,
        prompt.tokens,
        prompt.cut_before_message,
        _prefix(request, prompt),
        wanted if thought_tokens else None,
    )


def _request_params(
    prompt_input: PromptInput, target: llm.Target, limit: int | None
) -> tuple[dict[str, Any], int]:
    """Return the parameters as the server spells them, and the tokens allowed for a thought."""
    server, support = target.server, target.server.facts_of(target.model).thinking
    params, thought_tokens = thinking_fields(
        prompt_input.params,
        support,
        context=limit or server.context_of(target.model),
        ends_at_once=prompt_input.ends_thinking,
    )
    may_think = support.thinks is not False and setting_of(prompt_input.params) != "off"
    if may_think and not prompt_input.ends_thinking and server.kind != Kind.OPENAI:
        params["reasoning_control"] = True  # a field of llama.cpp, for “Answer now”
    return params, thought_tokens


def _with_tools(request: ChatRequest, prompt_input: PromptInput) -> ChatRequest:
    return replace(
        request,
        tools=prompt_input.offer.definitions(),
        tool_choice="" if prompt_input.may_call else "none",
        parallel_tool_calls=prompt_input.offer.parallel,
    )


def supports_tools(server: Server, model: str) -> bool:
    """Return False if the model's chat template is known to have no tools."""
    return server.facts_of(model).abilities.get("tools") is not False


def _build_prompt(
    prompt_input: PromptInput, target: llm.Target, *, limit: int | None, offered: bool
) -> context.Prompt:
    server, system = target.server, prompt_input.system_prompt
    abilities = server.facts_of(target.model).abilities
    return context.build_prompt(
        "\n\n".join(filter(None, (system.text if system else "", prompt_input.documents))) or None,
        prompt_input.messages,
        context=limit or server.context_of(target.model),
        counted=prompt_input.counted,
        summaries=prompt_input.summaries,
        keep_reasoning=bool(abilities.get("preserve_reasoning")),
        must_cut=limit is not None,
        with_tools=supports_tools(server, target.model),
        definitions=prompt_input.offer.size if offered else 0,
    )


def _append_answer_start(
    messages: list[LLMMessage], params: dict[str, Any], start: tuple[str, str]
) -> None:
    text, reasoning = start
    if not text:
        return
    messages.append({"role": "assistant", "content": text})
    if reasoning:  # no server continues an answer while thinking is on; it has thought already
        off = dict.fromkeys(SWITCHES, False)
        params["chat_template_kwargs"] = params.get("chat_template_kwargs", {}) | off


def _prefix(request: ChatRequest, prompt: context.Prompt) -> PromptPrefix:
    definitions = json.dumps(request.tools, sort_keys=True).encode() if request.tools else b""
    front = prompt.front
    return PromptPrefix(
        tools_hash=hashlib.sha256(definitions).hexdigest()[:16] if definitions else "",
        summary=front.summary.id if front.summary else None,
        pinned=tuple(m.id for m in front.pinned if m.pinned) if front.pinned else None,
        front_bytes=front.size,
        left_out=prompt.left_out,
    )


def answer_limit(server: Server, model: str, wanted: int | None) -> int | None:
    """Return the `max_tokens` for a server; None: send none.

    llama.cpp ends an answer where its slot does. Others count `max_tokens` into what has to fit
    and refuse the request, so they are sent none that nobody asked for.
    """
    return limit_for(
        wanted,
        context=server.context_of(model) if server.continues_messages else None,
        pool=server.pool(model),
        slots=server.slots_of(model),
    )


def limit_for(
    wanted: int | None, *, context: int | None, pool: int | None = None, slots: int = 1
) -> int | None:
    """Return `max_tokens` of a request; None if it is left to the server.

    It never depends on an estimate of the prompt: a server that knows the prompt ends an answer at
    the end of its slot, and a wrong guess would cut answers short.

    Args:
        wanted: what a person set.
        context: tokens per slot, if the server is known to end answers there.
        pool: tokens that all slots share; exceeding them ends every request in flight.
    """
    if wanted is not None:
        return wanted
    if pool and slots > 1:
        return max(ANSWER_TOKENS, int(SHARE_OF_SLOT * pool / slots))
    return context
