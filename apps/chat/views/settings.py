"""The panel beside a conversation: its model, system prompt, parameters and presets."""

import json
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.conversations import model_state, presets, services
from apps.chat.models import Conversation, Preset
from apps.chat.prompt import answer_format, build, cache_loss, params
from apps.chat.views import tools
from apps.chat.views.conversation import get_conversation, get_preset, get_prompt
from apps.core.api import owner
from apps.core.schemas.json_schemas import BadSchema
from apps.servers import services as llm


@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, pk: int) -> HttpResponse:
    """The panel; on POST one change of it, saved at once."""
    found = get_conversation(request, pk)
    if request.method != "POST":
        return _panel(request, found)
    try:
        found.server, found.model = presets.chosen(request.POST.get("model", ""))
        edited = params.from_form(request.POST.dict())
    except params.BadParams as error:
        return _said(request, found, errors=error.errors)
    except presets.NotThere as error:
        return _said(request, found, errors={"model": str(error)})
    found.params = params.merged(found.params, edited)
    found.system_prompt = get_prompt(request, request.POST.get("system_prompt", ""))
    found.save(update_fields=["server", "model", "params", "system_prompt"])
    return _said(request, found, saved="Saved.")


@require_POST
def answer_fields(request: HttpRequest, pk: int) -> HttpResponse:
    """Which fields the answers have; none: free text."""
    found = get_conversation(request, pk)
    try:
        found.response_format = answer_format.from_form(request.POST.get("schema", ""))
    except BadSchema as error:
        return _said(request, found, errors={"schema": str(error)})
    found.save(update_fields=["response_format"])
    fields = answer_format.schema_of(found.response_format).get("properties", {})
    saved = f"Structured output on: {len(fields)} field{'' if len(fields) == 1 else 's'}."
    return _said(request, found, saved=saved if fields else "Structured output off.")


@require_POST
def check_prompt(request: HttpRequest, pk: int) -> HttpResponse:
    """What in a system prompt will be different another time, while it is being written."""
    get_conversation(request, pk)
    changing = cache_loss.changing_parts(request.POST.get("text", ""))
    return render(request, "chat/settings/_uncached_parts.html", {"changing": changing})


@require_safe
def model(request: HttpRequest, pk: int) -> HttpResponse:
    """The model's name and state, as the head of the page shows them."""
    found = get_conversation(request, pk)
    return render(request, "chat/composer/_model_status.html", model_state.head_now(found))


@require_safe
def chosen_model(request: HttpRequest) -> HttpResponse:
    """The same of the model that is picked for a new conversation, or that its preset names."""
    key, preset = request.GET.get("model", ""), request.GET.get("preset", "")
    begun = Conversation()
    try:
        begun.server, begun.model = presets.begun_with(get_preset(request, preset), key)
    except presets.NotThere as error:
        return render(request, "chat/composer/_model_selected.html", {"no_server": str(error)})
    url = f"{reverse('chat:model_selection')}?{urlencode({'model': key, 'preset': preset})}"
    return render(request, "chat/composer/_model_selected.html", model_state.head_now(begun, url))


@require_POST
def apply_preset(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    presets.apply(get_preset(request, request.POST.get("preset", "0")), found)
    return _panel(request, found, saved="Preset applied.")


@require_POST
def save_preset(request: HttpRequest, pk: int) -> HttpResponse:
    """What the conversation is set to, under a name."""
    found = get_conversation(request, pk)
    try:
        saved = presets.save_as(request.POST.get("name", ""), found, owner(request))
    except presets.NoName as error:
        return _said(request, found, errors={"name": str(error)})
    return _panel(request, found, saved=f"Saved as “{saved}”.")


@require_POST
def delete_preset(request: HttpRequest, pk: int) -> HttpResponse:
    """Conversations that were set by it keep what they have."""
    found = get_conversation(request, pk)
    preset = get_preset(request, request.POST.get("preset", "0"))
    preset.delete()
    return _panel(request, found, saved=f"Preset “{preset}” deleted.")


@require_POST
def write_prompt(request: HttpRequest, pk: int) -> HttpResponse:
    """A system prompt in other words: a new version, which this conversation gets."""
    found = get_conversation(request, pk)
    name, text = request.POST.get("name", "").strip()[:100], request.POST.get("text", "").strip()
    if not name or not text:
        return _said(
            request, found, errors={"text": "Enter a name and a text for the system prompt."}
        )
    found.system_prompt = services.save_system_prompt(owner=owner(request), name=name, text=text)
    found.save(update_fields=["system_prompt"])
    return _panel(request, found, saved=f"Saved as “{found.system_prompt}”.")


def _panel(request: HttpRequest, found: Conversation, saved: str = "") -> HttpResponse:
    user = owner(request)
    servers = presets.choices(keep=found.server_id)
    prompts = services.system_prompts_of(user)
    if found.system_prompt and found.system_prompt not in prompts:
        prompts.append(found.system_prompt)
    schema = answer_format.schema_of(found.response_format)
    context = model_state.head_of(found) | {
        "conversation": found,
        "servers": servers,
        "key": presets.key_of(found.server_id, found.model),
        "prompts": prompts,
        "presets": Preset.objects.owned_by(user),
        "sampling": params.SAMPLING,
        "repetition": params.REPETITION,
        "budget": params.BUDGET,
        "values": params.to_form(found.params),
        "limits": _limits(found),
        "schema": schema,
        "schema_json": json.dumps(schema),
        "changing": cache_loss.changing_parts(found.system_prompt.text)
        if found.system_prompt
        else [],
        "tools": tools.panel(found),
        "saved": saved,
        "change": bool(saved),
    }
    return render(request, "chat/settings/_panel.html", context)


def _limits(found: Conversation) -> dict[str, str]:
    """What holds where a field is left empty, as far as that is known."""
    try:
        target = llm.choose_target(*build.chosen(found))
    except llm.NoServer:
        return {}
    most = build.answer_limit(target.server, target.model, None)
    return {"max_tokens": f"up to {most:,}"} if most else {}


def _said(
    request: HttpRequest,
    found: Conversation,
    *,
    saved: str = "",
    errors: dict[str, str] | None = None,
) -> HttpResponse:
    """What became of a change; the form stays as it is. With the model's new state when saved."""
    context: dict[str, Any] = {"conversation": found, "saved": saved, "errors": errors}
    if not errors:
        context |= model_state.head_of(found) | {"change": True}
    answer = render(
        request, "chat/settings/_save_status.html", context, status=422 if errors else 200
    )
    answer["HX-Retarget"], answer["HX-Reswap"] = "#save-status", "outerHTML"
    return answer
