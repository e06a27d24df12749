"""The cards of calls on the page, and which tools a conversation's model may call."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.answering import runner
from apps.chat.conversations import services
from apps.chat.models import Conversation, ToolCall
from apps.chat.prompt import build
from apps.chat.tools import deciding
from apps.chat.tools import settings as tool_settings
from apps.chat.views.conversation import get_conversation, in_place_of_thread, refused, whole_thread
from apps.core.api import get_owned
from apps.servers import services as llm

USE = "use-"
ALL = "all-"


@require_safe
def call(request: HttpRequest, pk: int) -> HttpResponse:
    """One card. The page fetches it anew whenever its call has news."""
    return _card(request, _get(request, pk))


@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Whether a call may run: `decision` must be run, always or refuse."""
    found, decision = _get(request, pk), request.POST.get("decision")
    if decision not in {"run", "always", "refuse"}:
        return HttpResponseBadRequest("`decision` must be run, always or refuse.")
    try:
        decided = deciding.decide(
            found, run=decision in {"run", "always"}, always=decision == "always"
        )
    except services.ChatError as error:
        return refused(request, error)
    if decided.answer_id != found.answer_id:  # another answer goes on from the one on the page
        return in_place_of_thread(whole_thread(request, decided.answer.conversation_id))
    return _card(request, decided)


@require_POST
def run_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Runs a call that was cut off; another answer goes on from its result."""
    try:
        again = deciding.run_again(_get(request, pk))
    except services.ChatError as error:
        return refused(request, error)
    return in_place_of_thread(whole_thread(request, again.answer.conversation_id))


@require_POST
def tools(request: HttpRequest, pk: int) -> HttpResponse:
    """One change of the panel's tools, saved at once."""
    found = get_conversation(request, pk)
    use = {
        name.removeprefix(USE): str(value)
        for name, value in request.POST.items()
        if name.startswith(USE)
    }
    groups = {name: str(v) for name, v in request.POST.items() if name.startswith(ALL) and v}
    for name, approval in groups.items():
        use |= tool_settings.for_all(name.removeprefix(ALL), approval, found.owner_id)
    rounds = request.POST.get("rounds", "").strip()
    given = {
        "use": use,
        "rounds": int(rounds) if rounds.isdecimal() and len(rounds) < 6 else 0,
        "parallel": "parallel" in request.POST,
    }
    context: dict[str, Any] = {"conversation": found}
    try:
        found.tools = tool_settings.checked(given, found.owner_id)
    except tool_settings.BadTools as error:
        context["errors"] = {"tools": str(error)}
    else:
        found.save(update_fields=["tools"])
        context["saved"] = "Saved."
        if groups:  # the choices of the group are not what the page shows any more
            context |= {"tools": panel(found), "tools_changed": True}
    said = "chat/settings/_save_status.html"
    return render(request, said, context, status=422 if "errors" in context else 200)


def panel(found: Conversation) -> dict[str, Any]:
    """What the panel shows of tools."""
    offer = tool_settings.offer(found.tools, found.owner_id)
    return {
        "choices": tool_settings.choices(found.tools, found.owner_id),
        "offer": offer,
        "rounds_at_most": tool_settings.MAX_ROUNDS,
        "cannot": _cannot(found),
    }


def _cannot(found: Conversation) -> str:
    """The model that would not be sent any tools, because its template knows none."""
    try:
        target = services.target_of(found)
    except llm.NoServer:
        return ""
    return "" if build.takes_tools(target.server, target.model) else target.model


def _get(request: HttpRequest, pk: int) -> ToolCall:
    return get_owned(ToolCall.objects.select_related("answer"), request, pk)


def _card(request: HttpRequest, found: ToolCall) -> HttpResponse:
    if found.is_open:
        runner.settle([found.answer])
        found.refresh_from_db()
    return render(request, "chat/thread/_tool_call.html", {"call": found})
