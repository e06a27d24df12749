"""Tool calls on the page, and the tools of a conversation."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversations import call_decisions, services
from apps.chat.errors import ChatError
from apps.chat.models import MAX_ROUNDS, Conversation, ToolCall, mark_orphans_interrupted
from apps.chat.prompt.prepare import supports_tools
from apps.chat.tools import choices as tool_choices
from apps.chat.tools import settings as tool_settings
from apps.chat.views.lookups import get_chat_or_draft
from apps.chat.views.thread import refuse, replace_thread, whole_thread
from apps.core.api import get_owned
from apps.core.tools import Approval
from apps.servers import services as llm

USE = "use-"  # + tool name
ALL = "all-"  # + group
APPROVALS = (
    (Approval.NEVER, "Off", "Off"),
    (Approval.ASK, "Ask", "Ask first"),
    (Approval.ALWAYS, "Always", "Always allow"),
)
"""Value, short name and name of each choice for a tool."""


@require_safe
def call(request: HttpRequest, pk: int) -> HttpResponse:
    """Render one call. The page asks for it whenever its call changes."""
    return _render_call(request, _get(request, pk))


@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Allow or deny a call: `decision` must be run, always or refuse."""
    found, decision = _get(request, pk), request.POST.get("decision")
    if decision not in {"run", "always", "refuse"}:
        return HttpResponseBadRequest("`decision` must be run, always or refuse.")
    try:
        decided = call_decisions.decide(
            found, run=decision in {"run", "always"}, always=decision == "always"
        )
    except ChatError as error:
        return refuse(request, error)
    if decided.answer_id != found.answer_id:  # another answer continues the one on the page
        return replace_thread(whole_thread(request, decided.answer.conversation_id))
    return _render_call(request, decided)


@require_POST
def run_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Run a call that was cut off; another answer continues with its result."""
    try:
        again = call_decisions.run_again(_get(request, pk))
    except ChatError as error:
        return refuse(request, error)
    return replace_thread(whole_thread(request, again.answer.conversation_id))


@require_POST
def tools(request: HttpRequest, pk: int) -> HttpResponse:
    """Save one change of the tools."""
    found = get_chat_or_draft(request, pk)
    use = {
        name.removeprefix(USE): str(value)
        for name, value in request.POST.items()
        if name.startswith(USE)
    }
    whole = {name: str(v) for name, v in request.POST.items() if name.startswith(ALL) and v}
    for name, approval in whole.items():
        use |= tool_choices.approve_group(name.removeprefix(ALL), approval, found.owner_id)
    rounds = request.POST.get("rounds", "").strip()
    context: dict[str, Any] = {"conversation": found}
    try:
        checked = tool_settings.check(
            use,
            rounds=int(rounds) if rounds.isdecimal() and len(rounds) < 6 else 0,
            parallel="parallel" in request.POST,
            person=found.owner_id,
        )
    except tool_settings.BadTools as error:
        context["errors"] = {"tools": str(error)}
    else:
        found.tools = checked.to_json()
        found.save(update_fields=["tools"])
        # Of a group that was changed as a whole, the page does not show the new choices yet.
        context |= {"saved": "Saved.", "tools_saved": True, "group_changed": bool(whole)}
        context["tools"] = panel(found)
    status = 422 if "errors" in context else 200
    return render(request, "chat/settings/_save_status.html", context, status=status)


def panel(found: Conversation) -> dict[str, Any]:
    """Return the template context of the tools in the panel."""
    offer = tool_settings.offer(found.tool_settings, found.owner_id)
    return {
        "groups": tool_choices.groups(found.tool_settings, found.owner_id),
        "approvals": APPROVALS,
        "offer": offer,
        "max_rounds": MAX_ROUNDS,
        "model_without_tools": _model_without_tools(found),
    }


def _model_without_tools(found: Conversation) -> str:
    """Return the model's name if its chat template has no tools, else ""."""
    try:
        target = services.target_of(found)
    except llm.NoServer:
        return ""
    return "" if supports_tools(target.server, target.model) else target.model


def _get(request: HttpRequest, pk: int) -> ToolCall:
    return get_owned(ToolCall.objects.select_related("answer"), request, pk)


def _render_call(request: HttpRequest, found: ToolCall) -> HttpResponse:
    if found.is_open:
        mark_orphans_interrupted([found.answer])
        found.refresh_from_db()
    return render(request, "chat/thread/answer/_tool_call.html", {"call": found})
