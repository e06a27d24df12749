"""Two answers to one question side by side."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from apps.chat.conversations import compare as comparisons
from apps.chat.errors import ChatError
from apps.chat.models import Preset
from apps.chat.presets import model_choices
from apps.chat.views.lookups import get_answer, get_preset
from apps.chat.views.thread import refuse, whole_thread
from apps.core.api import owner


@require_http_methods(["GET", "HEAD", "POST"])
def compare(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the form, or on POST start the second answer."""
    found = get_answer(request, pk)
    if request.method != "POST":
        mine = Preset.objects.owned_by(owner(request))
        context = {"message": found, "servers": model_choices.list_models(), "presets": mine}
        return render(request, "chat/thread/_compare.html", context)
    try:
        server, model = model_choices.parse_key(request.POST.get("model", ""))
        preset = get_preset(request, request.POST.get("preset", ""))
        beside = "alone" not in request.POST
        comparisons.compare(found, server=server, model=model, preset=preset, beside=beside)
    except ChatError as error:
        return refuse(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def keep(request: HttpRequest, pk: int) -> HttpResponse:
    """Continue from this answer."""
    found = get_answer(request, pk)
    comparisons.keep(found)
    return whole_thread(request, found.conversation_id)
