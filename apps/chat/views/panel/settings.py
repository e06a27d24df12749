"""The settings panel of a conversation: model, system prompt, parameters, presets."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.composer.server_line import server_line
from apps.chat.conversations import model_state
from apps.chat.models import Conversation, Preset
from apps.chat.presets import model_choices, presets, system_prompts
from apps.chat.presets.system_prompts import changing_parts
from apps.chat.prompt import params_form, response_format
from apps.chat.prompt.prepare import answer_limit
from apps.chat.views.lookups import get_chat_or_draft, get_preset, get_prompt
from apps.chat.views.panel import tools
from apps.core.api import owner
from apps.core.schemas.json_schemas import BadSchema
from apps.llm.thinking import thinking_choices
from apps.servers import services as llm


@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the panel, or on POST save one change of it."""
    found = get_chat_or_draft(request, pk)
    if request.method != "POST":
        return _panel(request, found)
    try:
        found.server, found.model = model_choices.parse_key(request.POST.get("model", ""))
        edited = params_form.parse_form(request.POST.dict())
    except params_form.BadParams as error:
        return _render_result(request, found, errors=error.errors)
    except model_choices.ModelNotAvailable as error:
        return _render_result(request, found, errors={"model": str(error)})
    found.params = params_form.merge(found.sampling, edited).to_json()
    found.system_prompt = get_prompt(request, request.POST.get("system_prompt", ""))
    found.save(update_fields=["server", "model", "params", "system_prompt"])
    if "reload" in request.POST:
        return _panel(request, found, saved="Saved.")
    return _render_result(request, found, saved="Saved.")


@require_POST
def answer_fields(request: HttpRequest, pk: int) -> HttpResponse:
    """Set the fields of structured answers; none: free text."""
    found = get_chat_or_draft(request, pk)
    try:
        found.response_format = response_format.parse_form(request.POST.get("schema", ""))
    except BadSchema as error:
        return _render_result(request, found, errors={"schema": str(error)})
    found.save(update_fields=["response_format"])
    fields = response_format.schema_of(found.response_format).get("properties", {})
    saved = f"Structured output on: {len(fields)} field{'' if len(fields) == 1 else 's'}."
    return _render_result(request, found, saved=saved if fields else "Structured output off.")


@require_POST
def check_prompt(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the parts of a system prompt that change from day to day, while it is typed."""
    get_chat_or_draft(request, pk)
    changing = changing_parts(request.POST.get("text", ""))
    return render(request, "chat/settings/_uncached_parts.html", {"changing": changing})


@require_safe
def model(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the model's name and state for the head of the page."""
    found = get_chat_or_draft(request, pk)
    return render(
        request, "chat/composer/_model_status.html", model_state.fresh_model_context(found)
    )


@require_POST
def apply_preset(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_chat_or_draft(request, pk)
    presets.apply(get_preset(request, request.POST.get("preset", "0")), found)
    return _panel(request, found, saved="Preset applied.")


@require_POST
def save_preset(request: HttpRequest, pk: int) -> HttpResponse:
    """Save the settings of the conversation as a preset."""
    found = get_chat_or_draft(request, pk)
    try:
        saved = presets.save_as(request.POST.get("name", ""), found, owner(request))
    except presets.NoName as error:
        return _render_result(request, found, errors={"name": str(error)})
    return _panel(request, found, saved=f"Saved as “{saved}”.")


@require_POST
def delete_preset(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a preset. Conversations keep their settings."""
    found = get_chat_or_draft(request, pk)
    preset = get_preset(request, request.POST.get("preset", "0"))
    preset.delete()
    return _panel(request, found, saved=f"Preset “{preset}” deleted.")


@require_POST
def write_prompt(request: HttpRequest, pk: int) -> HttpResponse:
    """Save a new version of a system prompt, and use it in this conversation."""
    found = get_chat_or_draft(request, pk)
    name, text = request.POST.get("name", "").strip()[:100], request.POST.get("text", "").strip()
    if not name or not text:
        return _render_result(
            request, found, errors={"text": "Enter a name and a text for the system prompt."}
        )
    found.system_prompt = system_prompts.save_system_prompt(
        owner=owner(request), name=name, text=text
    )
    found.save(update_fields=["system_prompt"])
    return _panel(request, found, saved=f"Saved as “{found.system_prompt}”.")


def _panel(request: HttpRequest, found: Conversation, saved: str = "") -> HttpResponse:
    user = owner(request)
    servers = model_choices.list_models(keep=found.server_id)
    prompts = system_prompts.list_system_prompts(user)
    if found.system_prompt and found.system_prompt not in prompts:
        prompts.append(found.system_prompt)
    schema = response_format.schema_of(found.response_format)
    values = params_form.form_values(found.sampling)
    model = model_state.model_context(found)
    target = model.get("target")
    context = model | {
        "conversation": found,
        "line": server_line(target),
        "servers": servers,
        "key": model_choices.key_of(found.server_id, found.model),
        "prompts": prompts,
        "presets": Preset.objects.owned_by(user),
        "sampling": params_form.SAMPLING,
        "repetition": params_form.REPETITION,
        "values": values,
        "thinking": thinking_choices(values["thinking"]),
        "limits": _limits(target),
        "versions": system_prompts.versions_of(found.system_prompt) if found.system_prompt else [],
        **_defaults(target),
        "schema": schema,
        "schema_json": json.dumps(schema),
        "changing": changing_parts(found.system_prompt.text) if found.system_prompt else [],
        "tools": tools.panel(found),
        "saved": saved,
        "change": bool(saved),
    }
    return render(request, "chat/settings/_panel.html", context)


@require_safe
def compare_prompts(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the difference between two versions of a system prompt."""
    get_chat_or_draft(request, pk)
    old, new = (get_prompt(request, request.GET.get(name, "0") or "0") for name in ("old", "new"))
    assert old is not None
    assert new is not None
    if old.version > new.version:
        old, new = new, old
    parts = system_prompts.difference(old.text, new.text)
    context = {"old": old, "new": new, "parts": parts}
    return render(request, "chat/settings/_difference.html", context)


def _defaults(target: llm.Target | None) -> dict[str, Any]:
    """Return the server's own sampling parameters, and where they lie on the sliders."""
    if target is None:
        return {"defaults": {}, "ticks": {}}
    reported = target.server.facts_of(target.model).sampling
    fields = [field for field in params_form.NUMBERS if field.name in reported]
    return {
        "defaults": {field.name: f"{reported[field.name]:g}" for field in fields},
        "ticks": {field.name: field.tick(reported[field.name]) for field in fields},
    }


def _limits(target: llm.Target | None) -> dict[str, str]:
    """Return the effective limits for empty fields, if they are known."""
    if target is None:
        return {}
    limit = answer_limit(target.server, target.model, None)
    return {"max_tokens": f"up to {limit:,}"} if limit else {}


def _render_result(
    request: HttpRequest,
    found: Conversation,
    *,
    saved: str = "",
    errors: dict[str, str] | None = None,
) -> HttpResponse:
    """Render the result of a change below the form, with the model's new state if it was saved."""
    context: dict[str, Any] = {"conversation": found, "saved": saved, "errors": errors}
    if not errors:
        context |= model_state.model_context(found) | {"change": True}
    answer = render(
        request, "chat/settings/_save_status.html", context, status=422 if errors else 200
    )
    answer["HX-Retarget"], answer["HX-Reswap"] = "#save-status", "outerHTML"
    return answer
