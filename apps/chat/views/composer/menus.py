"""The chips of the composer and their menus, the same before and after the first message."""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.composer import chips, model_menu
from apps.chat.composer.changes import CHANGES
from apps.chat.composer.server_line import server_line
from apps.chat.conversations import model_state
from apps.chat.errors import ChatError
from apps.chat.models import Conversation, Preset
from apps.chat.prompt import params_form, response_format
from apps.chat.views.lookups import get_chat_or_draft
from apps.chat.views.panel import tools
from apps.core.api import owner
from apps.llm.thinking import thinking_choices
from apps.servers import services as llm

MENUS = ("model", "tools", "thinking", "preset", "json")


def composer_context(chat: Conversation, target: llm.Target | None) -> dict[str, Any]:
    """Return the template context of the chips and of the line below the composer."""
    return {
        "conversation": chat,
        "chips": chips.chips_of(chat),
        "other_models": chips.other_model_names(chat),
        "line": server_line(target),
    }


@require_safe
def show_chips(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the chips: the page asks after a change elsewhere."""
    return _render_chips(request, get_chat_or_draft(request, pk))


@require_safe
def menu(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Render the menu of one chip."""
    if name not in MENUS:
        raise Http404(name)
    return _render_menu(request, get_chat_or_draft(request, pk), name)


@require_POST
def change(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Make one change (`value`, several for tools), and render the chips."""
    if (make := CHANGES.get(name)) is None:
        raise Http404(name)
    found = get_chat_or_draft(request, pk)
    try:
        make(found, request.POST.getlist("value"))
    except ChatError as error:
        return _refuse(request, error)
    return _render_chips(request, found)


@require_POST
def favourite(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a model a favourite, or no longer, and render the menu anew."""
    found = get_chat_or_draft(request, pk)
    try:
        model_menu.toggle_favourite(owner(request), request.POST.get("value", ""))
    except ChatError as error:
        return _refuse(request, error)
    return _render_menu(request, found, "model")


def _render_chips(request: HttpRequest, chat: Conversation) -> HttpResponse:
    model = model_state.model_context(chat)
    context = model | composer_context(chat, model.get("target"))
    return render(request, "chat/composer/_chips_update.html", context)


def _refuse(request: HttpRequest, error: ChatError) -> HttpResponse:
    response = render(request, "chat/composer/_error.html", {"sentence": str(error)}, status=422)
    response["HX-Retarget"], response["HX-Reswap"] = "#menu-error", "innerHTML"
    return response


def _render_menu(request: HttpRequest, chat: Conversation, name: str) -> HttpResponse:
    context: dict[str, Any] = {"conversation": chat}
    match name:
        case "model":
            context["groups"] = model_menu.model_groups(chat, owner(request))
            context["is_default"] = chat.server_id is None
        case "tools":
            context["tools"] = tools.panel(chat)
        case "thinking":
            chosen = params_form.form_values(chat.sampling)["thinking"]
            context |= {"chosen": chosen, "choices": thinking_choices(chosen)}
        case "preset":
            context["presets"] = Preset.objects.owned_by(owner(request))
        case "json":
            context["schema_json"] = json.dumps(response_format.schema_of(chat.response_format))
    return render(request, f"chat/composer/menus/_{name}.html", context)
