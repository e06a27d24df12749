"""The library of prompts, and the list of them that “/” opens."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.chat.composer import prompts
from apps.chat.models import Prompt
from apps.chat.views.chat_list import sidebar_context
from apps.core.api import get_owned, owner


@require_http_methods(["GET", "HEAD", "POST"])
def prompts_page(request: HttpRequest) -> HttpResponse:
    """Render the library, or on POST create a prompt (`name`, `text`)."""
    person = owner(request)
    if request.method == "POST":
        name, text = request.POST.get("name", ""), request.POST.get("text", "")
        try:
            saved = prompts.save_prompt(person, name, text)
        except prompts.BadPrompt as error:
            context = _library(request) | {"error": str(error), "name": name, "text": text}
            return render(request, "chat/prompts.html", context, status=422)
        messages.success(request, f"Saved “{saved}”.")
        return redirect("chat:prompts")
    return render(request, "chat/prompts.html", _library(request))


def _library(request: HttpRequest) -> dict[str, object]:
    person = owner(request)
    found = prompts.list_prompts(person)
    return sidebar_context(request) | {
        "prompts": [(prompt, prompts.versions(person, prompt.name)) for prompt in found],
        "name": prompts.clean_name(request.GET["new"])
        if request.GET.get("new", "").strip()
        else "",
        "text": "",
    }


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Render the prompts that fit what was typed after the slash (`q`)."""
    words = request.GET.get("q", "").strip()[: prompts.NAME_LENGTH]
    found = prompts.find_prompts(owner(request), words)
    shown = [(prompt, prompts.pieces(prompt.text[:200])) for prompt in found]
    return render(request, "chat/composer/menus/_prompts.html", {"prompts": shown, "words": words})


@require_POST
def save(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a prompt and save its text, as a new version if it has changed."""
    found = get_owned(Prompt, request, pk)
    try:
        prompts.rename_prompt(found, request.POST.get("name", ""))
        saved = prompts.save_prompt(owner(request), found.name, request.POST.get("text", ""))
    except prompts.BadPrompt as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Saved “{saved}”.")
    return redirect("chat:prompts")


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a prompt with all of its versions."""
    found = get_owned(Prompt, request, pk)
    prompts.delete_prompt(found)
    messages.success(request, f"“{found}” deleted.")
    return redirect("chat:prompts")
