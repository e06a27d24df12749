"""Turns thinking off in requests of jobs, or gives a thought room of its own.

A job's answers are short and many: a thought of a thousand tokens before each would cost ten times
as much as the rows, and would use up the answer's max tokens. So thinking is off where the chat
template can switch it off. Where it cannot, tokens for a thought are added to the answer's, and
llama.cpp ends the thought there. Where a server does not report what its model does, the first
answer shows it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apps.llm.client import ChatRequest, Completion

THINKING_TOKENS = 2_048  # room for a thought where nobody set a budget
ADVICE = "Turn thinking off, give it a thinking budget, or raise max tokens."
_OPEN, _CLOSE = "<think>", "</think>"

Complete = Callable[[ChatRequest], Awaitable[Completion]]


@dataclass(frozen=True, slots=True)
class ThinkingSupport:
    """Abilities of a model's chat template; None: not reported."""

    thinks: bool | None = None
    can_switch: bool | None = None
    """True if a request can turn thinking off or down."""
    can_disable: bool | None = None
    """True if a request can turn thinking off; else it can only set the effort."""


NOT_REPORTED = ThinkingSupport()


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """The parameters of a request, and the tokens on top of those for its answer."""

    params: Mapping[str, Any] = field(default_factory=dict)
    extra_tokens: int = 0


def plan_thinking(
    support: ThinkingSupport,
    wanted: str | int | None = None,
    effort: str = "",
    *,
    has_overrun: bool = False,
) -> ThinkingPlan:
    """Decide how a request keeps a model from thinking, or gives a thought its own room.

    Args:
        wanted: "off", "on", or a budget in tokens; None: off where that is possible.
        effort: as OpenAI names them, for models that take one: low, medium, high.
        has_overrun: True if the model has spent all of an answer on a thought before.
    """
    # Facts of versions that did not store the last one: nearly all switches can.
    can_end = support.can_switch if support.can_disable is None else support.can_disable
    is_off = wanted in (0, "off") or (wanted is None and not effort)
    budget = wanted if isinstance(wanted, int) and not is_off else THINKING_TOKENS
    if is_off and (can_end or (support.thinks is None and wanted is not None)):
        # An explicit "off" is sent to servers that report nothing too: vLLM and others know it.
        params = {"chat_template_kwargs": {"enable_thinking": False}}
        return ThinkingPlan(params, THINKING_TOKENS if has_overrun else 0)
    if not support.thinks:
        needs_none = not has_overrun and (is_off or support.thinks is False)
        return ThinkingPlan(
            {"reasoning_effort": effort} if effort else {}, 0 if needs_none else budget
        )
    kwargs: dict[str, Any] = {"enable_thinking": True} if can_end else {}
    if effort or (support.can_switch and not can_end):  # a template that takes an effort alone
        kwargs["reasoning_effort"] = effort or ("low" if is_off else "medium")
    extra = {"chat_template_kwargs": kwargs} if kwargs else {}
    return ThinkingPlan({"reasoning_budget_tokens": budget, **extra}, budget)


class Thinking:
    """The thinking of the model of one job: what it reports, and what its answers have shown."""

    def __init__(self, support: ThinkingSupport = NOT_REPORTED) -> None:
        self.support = support
        self.has_overrun = False

    def prepare(
        self, request: ChatRequest, wanted: str | int | None = None, effort: str = ""
    ) -> ChatRequest:
        plan = plan_thinking(self.support, wanted, effort, has_overrun=self.has_overrun)
        return replace(
            request,
            max_tokens=None
            if request.max_tokens is None
            else request.max_tokens + plan.extra_tokens,
            params={**request.params, **plan.params},
        )

    async def complete(
        self,
        complete: Complete,
        request: ChatRequest,
        wanted: str | int | None = None,
        effort: str = "",
    ) -> Completion:
        """The answer, without a thought in its text.

        A request that brought nothing but a thought, because the server did not report that the
        model thinks, is sent once more with room for it.

        Raises:
            LLMError: anything short of a complete answer.
        """
        first = self.prepare(request, wanted, effort)
        completion = self._split_thought(await complete(first))
        if not (is_all_thought(completion) and completion.finish_reason == "length"):
            return completion
        self.has_overrun = True
        second = self.prepare(request, wanted, effort)
        if second == first:
            return completion
        spent, completion = completion.usage, self._split_thought(await complete(second))
        return replace(completion, usage=spent + completion.usage)

    def _split_thought(self, completion: Completion) -> Completion:
        """Move a thought that the server left in the text out of the answer."""
        if completion.reasoning or self.support.thinks is False:
            return completion
        thought, close, answer = completion.text.partition(_CLOSE)
        opened = thought.lstrip().startswith(_OPEN)
        if close and (opened or self.support.thinks is None):
            thought = thought.lstrip().removeprefix(_OPEN)
            return replace(completion, text=answer.lstrip(), reasoning=thought or _OPEN)
        if opened and completion.finish_reason == "length":
            return replace(completion, text="", reasoning=completion.text)
        return completion


def is_all_thought(completion: Completion) -> bool:
    """True if there is no answer. Some servers show no thought but count its tokens."""
    if completion.reasoning:
        return not completion.text.strip()
    is_cut = completion.finish_reason == "length" and completion.usage.completion_tokens > 0
    return is_cut and not completion.text


def describe_missing_answer(completion: Completion, max_tokens: int | None) -> str:
    """A sentence about an answer that is missing because of a thought; else ""."""
    if not is_all_thought(completion):
        return ""
    if completion.finish_reason != "length":
        return f"The model ended after its thinking and wrote no answer. {ADVICE}"
    tokens = completion.usage.completion_tokens or max_tokens or 0
    return f"The model spent all {tokens:,} tokens thinking and wrote no answer. {ADVICE}"
