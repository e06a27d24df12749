"""Presets: the list of them and the page of one, below the settings page."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.errors import ChatError
from apps.chat.models import Preset, SystemPrompt
from apps.chat.presets import presets
from apps.chat.presets.preset_form import NEW, PresetForm
from apps.chat.presets.system_prompts import changing_parts
from apps.chat.views.lookups import get_preset, get_prompt
from apps.core.api import get_owned, owner


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    mine = Preset.objects.owned_by(owner(request)).select_related("system_prompt")
    lines = [(preset, presets.describe(preset)) for preset in mine]
    return render(request, "chat/presets/index.html", {"lines": lines})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Render the form of a new preset, or on POST create it."""
    return _form(request, Preset(owner=owner(request)))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the form of a preset, or on POST save it."""
    return _form(request, get_preset(request, str(pk)))


def _form(request: HttpRequest, preset: Preset) -> HttpResponse:
    title = preset.name or "New preset"
    form = PresetForm(preset, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            form.save()
        except presets.NameTaken as error:
            form.add_error("name", str(error))
        except ChatError as error:
            form.add_error("model", str(error))
        else:
            messages.success(request, f"Preset “{preset}” saved.")
            return redirect("presets:index")
    key, text = (str(form[name].value() or "") for name in ("system_prompt", "text"))
    context = {"form": form, "preset": preset, "title": title}
    context |= _prompt_context(key, form.chosen_prompt, text, list(map(str, form["text"].errors)))
    status = 422 if form.errors else 200
    return render(request, "chat/presets/edit.html", context, status=status)


@require_safe
def system_prompt(request: HttpRequest) -> HttpResponse:
    """Render the text of the system prompt that was chosen in the form (`system_prompt`)."""
    key = request.GET.get("system_prompt", "")
    chosen = None if key == NEW else get_prompt(request, key)
    context = _prompt_context(key, chosen, chosen.text if chosen else "")
    return render(request, "chat/presets/_system_prompt.html", context)


def _prompt_context(
    key: str, chosen: SystemPrompt | None, text: str, errors: Sequence[str] = ()
) -> dict[str, object]:
    return {
        "key": key,
        "chosen": chosen,
        "is_new_prompt": key == NEW,
        "text": text,
        "text_errors": errors,
        "changing": changing_parts(text),
    }


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a preset. Chats keep their settings."""
    found = get_owned(Preset, request, pk)
    found.delete()
    messages.success(request, f"Preset “{found}” deleted.")
    return redirect("presets:index")
