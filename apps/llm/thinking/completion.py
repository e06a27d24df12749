"""Answers of jobs without their thoughts, and what is wrong where there is nothing else. Pure.

A job's answers are short and many: a thought of a thousand tokens before each would cost ten times
as much as the rows, and would use up the answer's max tokens. So thinking is off unless a person
sets it. Where a server does not report what its model does, the first answer shows it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from apps.llm.chat_request import ChatRequest, Completion
from apps.llm.thinking.request import NOT_REPORTED, ThinkingSupport, plan_thinking
from apps.llm.thinking.setting import ThinkingSetting

ADVICE = "Turn thinking off, set a smaller thinking budget, or raise max tokens."
_OPEN, _CLOSE = "<think>", "</think>"

Complete = Callable[[ChatRequest], Awaitable[Completion]]


class Thinking:
    """The thinking of the model of one job: what it reports, and what its answers have shown."""

    def __init__(self, support: ThinkingSupport = NOT_REPORTED) -> None:
        self.support = support
        self.has_thought = False
        self.has_overrun = False

    def prepare(
        self, request: ChatRequest, setting: ThinkingSetting | None = None, effort: str = ""
    ) -> ChatRequest:
        plan = plan_thinking(
            self.support,
            setting,
            effort,
            has_thought=self.has_thought,
            has_overrun=self.has_overrun,
        )
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
        setting: ThinkingSetting | None = None,
        effort: str = "",
    ) -> Completion:
        """The answer, without a thought in its text.

        A request that brought nothing but a thought, because the server did not report that the
        model thinks, is sent once more: with thinking off, and with room for a thought where that
        is ignored.

        Raises:
            LLMError: anything short of a complete answer.
        """
        first = self.prepare(request, setting, effort)
        completion = self._split_thought(await complete(first))
        self.has_thought = self.has_thought or bool(completion.reasoning)
        if not (is_all_thought(completion) and completion.finish_reason == "length"):
            return completion
        self.has_overrun = True
        second = self.prepare(request, setting, effort)
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
