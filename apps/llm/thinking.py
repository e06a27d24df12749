"""Requests of jobs to models that think first: kept from it, or given room for it.

A job's answers are short and many: a thought of a thousand tokens before each would cost ten times
as much as the rows, and eats what the answer may have. So thinking is off where the chat template
can switch it off. Where it cannot, room for a thought is added to what the answer may have, and
llama.cpp ends the thought there. Of servers that do not say what their model does, the first reply
tells.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.llm.client import ChatRequest, Completion

ROOM = 2_048  # tokens of a thought where nobody said how many
FACTS = ("reasoning", "thinking_switch", "thinking_off")
ADVICE = "Turn thinking off, give it a thinking budget, or raise max tokens."
_OPEN, _CLOSE = "<think>", "</think>"

Complete = Callable[[ChatRequest], Awaitable[Completion]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request carries for it, and how many tokens come on top of the answer's."""

    params: Mapping[str, Any] = field(default_factory=dict)
    room: int = 0


def facts_of(model: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is known of a model's thinking, of all that is known of it."""
    return {name: (model or {}).get(name) for name in FACTS}


def plan(
    facts: Mapping[str, Any],
    wanted: str | int | None = None,
    effort: str = "",
    *,
    seen: bool = False,
) -> Plan:
    """
    Args:
        wanted: "off", "on", or so many tokens of thought; None: off where that can be.
        effort: as OpenAI names them, for models that take one: low, medium, high.
        seen: whether the model has spent all of an answer on a thought before.
    """
    thinks, can_switch = facts.get("reasoning"), facts.get("thinking_switch")
    # Facts from before this one was kept: nearly all switches can.
    can_end = can_switch if facts.get("thinking_off") is None else facts.get("thinking_off")
    is_off = wanted in (0, "off") or (wanted is None and not effort)
    room = wanted if isinstance(wanted, int) and not is_off else ROOM
    if is_off and (can_end or (thinks is None and wanted is not None)):
        # Who asked for it gets it sent to servers that do not say: vLLM and others know it.
        return Plan({"chat_template_kwargs": {"enable_thinking": False}}, ROOM if seen else 0)
    if not thinks:
        params: dict[str, Any] = {"reasoning_effort": effort} if effort else {}
        return Plan(params, 0 if not seen and (is_off or thinks is False) else room)
    kwargs: dict[str, Any] = {"enable_thinking": True} if can_end else {}
    if effort or (can_switch and not can_end):  # a template that takes an effort alone
        kwargs["reasoning_effort"] = effort or ("low" if is_off else "medium")
    extra = {"chat_template_kwargs": kwargs} if kwargs else {}
    return Plan({"reasoning_budget_tokens": room, **extra}, room)


class Thinking:
    """What the requests of one job know of their model's thinking."""

    def __init__(self, facts: Mapping[str, Any] | None = None) -> None:
        self.facts = facts or {}
        self.seen = False

    def prepared(
        self, request: ChatRequest, wanted: str | int | None = None, effort: str = ""
    ) -> ChatRequest:
        found = plan(self.facts, wanted, effort, seen=self.seen)
        return replace(
            request,
            max_tokens=None if request.max_tokens is None else request.max_tokens + found.room,
            params={**request.params, **found.params},
        )

    async def ask(
        self,
        complete: Complete,
        request: ChatRequest,
        wanted: str | int | None = None,
        effort: str = "",
    ) -> Completion:
        """The answer, without a thought in its text. A request that came to nothing but a thought,
        because nobody knew that the model thinks, is sent once more with room for it.

        Raises:
            LLMError: the server did not answer in full.
        """
        first = self.prepared(request, wanted, effort)
        completion = self._parted(await complete(first))
        if not (is_all_thought(completion) and completion.finish_reason == "length"):
            return completion
        self.seen = True
        second = self.prepared(request, wanted, effort)
        if second == first:
            return completion
        spent, completion = completion.usage, self._parted(await complete(second))
        return replace(completion, usage=spent + completion.usage)

    def _parted(self, completion: Completion) -> Completion:
        """A thought that the server left in the text is none of the answer."""
        if completion.reasoning or self.facts.get("reasoning") is False:
            return completion
        thought, close, answer = completion.text.partition(_CLOSE)
        opened = thought.lstrip().startswith(_OPEN)
        if close and (opened or self.facts.get("reasoning") is None):
            thought = thought.lstrip().removeprefix(_OPEN)
            return replace(completion, text=answer.lstrip(), reasoning=thought or _OPEN)
        if opened and completion.finish_reason == "length":
            return replace(completion, text="", reasoning=completion.text)
        return completion


def is_all_thought(completion: Completion) -> bool:
    """Whether there is nothing else. Some servers show no thought but count its tokens."""
    if completion.reasoning:
        return not completion.text.strip()
    is_cut = completion.finish_reason == "length" and completion.usage.completion_tokens > 0
    return is_cut and not completion.text


def problem_of(completion: Completion, max_tokens: int | None) -> str:
    """Why there is no answer, as a sentence; empty where a thought is not the reason."""
    if not is_all_thought(completion):
        return ""
    if completion.finish_reason != "length":
        return f"The model ended after its thinking and wrote no answer. {ADVICE}"
    tokens = completion.usage.completion_tokens or max_tokens or 0
    return f"The model spent all {tokens:,} tokens thinking and wrote no answer. {ADVICE}"
