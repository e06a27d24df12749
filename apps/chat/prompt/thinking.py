"""Thinking in a chat: its setting, and the fields of a request that carry it. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apps.chat.models.stored_json import SamplingParams
from apps.llm.client import ChatRequest
from apps.llm.thinking import (
    END_TOKENS,
    ENDED_BUDGET,
    THINKING_TOKENS,
    ThinkingSetting,
    ThinkingSupport,
    plan_thinking,
)

# Share of a slot for a thought whose budget nobody set: prompt and answer need the rest.
SHARE_OF_SLOT = 0.25
THINKING_FIELDS = ("reasoning_effort", "reasoning_budget_tokens", "reasoning_control")
SWITCHES = ("enable_thinking", "thinking")


def setting_of(params: SamplingParams) -> ThinkingSetting:
    """Return the setting, also of parameters that were stored as fields of llama.cpp."""
    if params.thinking is not None:
        return params.thinking
    switches = [(params.chat_template_kwargs or {}).get(name) for name in SWITCHES]
    budget = params.reasoning_budget_tokens
    if False in switches or budget == 0:
        return "off"
    if budget is not None and budget > 0:
        return budget
    return "on" if True in switches else "default"


def thinking_fields(
    params: SamplingParams,
    support: ThinkingSupport,
    *,
    context: int | None = None,
    ends_at_once: bool = False,
) -> tuple[dict[str, Any], int]:
    """Return the parameters as they are sent, and the tokens of a thought on top of max tokens.

    Args:
        context: tokens per slot.
        ends_at_once: for a title or a summary. Its prompt has to begin as the chat's does, so a
            thought is ended rather than switched off.
    """
    setting, given = setting_of(params), params.to_json()
    effort = given.pop("reasoning_effort", "")
    given.pop("thinking", None)
    given.pop("reasoning_budget_tokens", None)
    kwargs = without_switches(given.pop("chat_template_kwargs", {}))
    if ends_at_once and support.thinks is None:
        setting, effort = "off", ""  # such a server knows no budget
    plan = plan_thinking(
        support,
        setting,
        effort,
        has_limit=params.max_tokens is not None and not ends_at_once,
        default_budget=_default_budget(context),
    )
    sent, extra = {**given, **plan.params}, plan.extra_tokens
    if kwargs := kwargs | plan.params.get("chat_template_kwargs", {}):
        sent["chat_template_kwargs"] = kwargs
    if ends_at_once and support.thinks:
        sent["reasoning_budget_tokens"], extra = ENDED_BUDGET, END_TOKENS
    return sent, extra


def without_thinking(request: ChatRequest, support: ThinkingSupport) -> ChatRequest:
    """Return the request with thinking off."""
    plan = plan_thinking(support, "off")
    params = {name: value for name, value in request.params.items() if name not in THINKING_FIELDS}
    kwargs = params.get("chat_template_kwargs", {}) | plan.params.get("chat_template_kwargs", {})
    in_template = {"chat_template_kwargs": kwargs} if kwargs else {}
    return replace(request, params={**params, **plan.params, **in_template})


def without_switches(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's arguments that do not switch thinking."""
    return {name: value for name, value in kwargs.items() if name not in SWITCHES}


def _default_budget(context: int | None) -> int:
    share = THINKING_TOKENS if context is None else int(SHARE_OF_SLOT * context)
    return min(THINKING_TOKENS, share)
