"""The fields of a request that carry a setting of thinking to a server and a template. Pure.

No field is known everywhere: Qwen and most others listen to `enable_thinking`, Granite and Kimi to
`thinking`, gpt-oss and OpenAI to `reasoning_effort`. llama.cpp alone ends a thought after a number
of tokens, which is all that works for DeepSeek R1. So all that may be listened to are set;
templates do not see the rest, and a field that a server refuses is left out from then on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.llm.thinking.setting import ThinkingSetting

THINKING_TOKENS = 2_048  # room for a thought where nobody set a budget
# llama.cpp misses the end of a thought that its template begins with a line break if the budget is
# 0: the break counts as the first token of the end.
ENDED_BUDGET = 1
# A thought that is ended at once still has its first token and the text of its end.
END_TOKENS = 64
LOWEST_EFFORT = "low"


@dataclass(frozen=True, slots=True)
class ThinkingSupport:
    """Abilities of a model's chat template; None: not reported."""

    thinks: bool | None = None
    can_switch: bool | None = None
    """True if a request can turn thinking off or down."""
    can_disable: bool | None = None
    """True if a request can turn thinking off; else it can only set the effort."""

    @property
    def can_end(self) -> bool | None:
        # Facts of versions that did not store the last one: nearly all switches can.
        return self.can_switch if self.can_disable is None else self.can_disable


NOT_REPORTED = ThinkingSupport()


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """The parameters of a request, and the tokens on top of those for its answer."""

    params: Mapping[str, Any] = field(default_factory=dict)
    extra_tokens: int = 0


NOTHING = ThinkingPlan()


def plan_thinking(
    support: ThinkingSupport,
    setting: ThinkingSetting | None = None,
    effort: str = "",
    *,
    has_thought: bool = False,
    has_overrun: bool = False,
    has_limit: bool = True,
    default_budget: int = THINKING_TOKENS,
) -> ThinkingPlan:
    """Decide how a request turns thinking on or off, and how many tokens a thought gets.

    Args:
        setting: None: off, but nothing is sent to a server whose model is not known to think.
        effort: as OpenAI names them: none, minimal, low, medium, high, xhigh.
        has_thought: True if an answer has shown that the model thinks.
        has_overrun: True if an answer was a thought and nothing else.
        has_limit: False if the answer has no max tokens that a thought could use up.
        default_budget: tokens of a thought where the setting has none.
    """
    if setting is None and effort not in {"", "none"}:
        setting = "on"
    thinks = True if has_thought or has_overrun else support.thinks
    if thinks is False:
        return ThinkingPlan({"reasoning_effort": effort}) if effort else NOTHING
    if setting in {None, "off", 0} or effort == "none":
        room = THINKING_TOKENS if has_overrun else 0
        is_sent = thinks or setting is not None or effort == "none"
        return _off(support, room) if is_sent else NOTHING
    budget = setting if isinstance(setting, int) else default_budget
    has_budget = isinstance(setting, int) or (has_limit and bool(support.thinks))
    needs_room = has_limit and (bool(thinks) or setting != "default")
    params = _effort(support, effort)
    if has_budget:
        params["reasoning_budget_tokens"] = budget
    if setting != "default" and support.can_end is not False:
        params["chat_template_kwargs"] = _switch(True) | params.get("chat_template_kwargs", {})
    return ThinkingPlan(params, budget if needs_room else 0)


def _off(support: ThinkingSupport, room: int) -> ThinkingPlan:
    """Turn thinking off by a switch; where there is none, end a thought as it begins."""
    if support.can_end or support.thinks is None:
        params = {"reasoning_effort": "none", "chat_template_kwargs": _switch(False)}
        return ThinkingPlan(params, room)
    # llama.cpp takes “none” off the request, and then such a template thinks at its default.
    params = _effort(support, LOWEST_EFFORT if support.can_switch else "")
    return ThinkingPlan({"reasoning_budget_tokens": ENDED_BUDGET, **params}, room or END_TOKENS)


def _switch(is_on: bool) -> dict[str, Any]:
    return {"enable_thinking": is_on, "thinking": is_on}


def _effort(support: ThinkingSupport, effort: str) -> dict[str, Any]:
    if not effort:
        return {}
    # Older builds of llama.cpp know the effort of templates alone.
    in_template = {"chat_template_kwargs": {"reasoning_effort": effort}} if support.thinks else {}
    return {"reasoning_effort": effort, **in_template}
