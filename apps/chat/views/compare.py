"""Two answers to one question side by side."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from apps.chat.conversations import compare as conversations_compare
from apps.chat.conversations import presets, services
from apps.chat.models import Message, Preset
from apps.chat.views.conversation import get_preset, refused, whole_thread
from apps.core.api import get_owned, owner


@require_http_methods(["GET", "HEAD", "POST"])
def compare(request: HttpRequest, pk: int) -> HttpResponse:
    """The form: with which model or preset; on POST the answer of that one, beside this one."""
    found = _answer(request, pk)
    if request.method != "POST":
        mine = Preset.objects.owned_by(owner(request))
        context = {"message": found, "servers": presets.choices(), "presets": mine}
        return render(request, "chat/thread/_compare.html", context)
    try:
        server, model = presets.chosen(request.POST.get("model", ""))
        preset = get_preset(request, request.POST.get("preset", ""))
        conversations_compare.beside(found, server=server, model=model, preset=preset)
    except services.ChatError as error:
        return refused(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def keep(request: HttpRequest, pk: int) -> HttpResponse:
    """Goes on from this one of the two."""
    found = _answer(request, pk)
    conversations_compare.keep(found)
    return whole_thread(request, found.conversation_id)


def _answer(request: HttpRequest, pk: int) -> Message:
    return get_owned(Message.objects.answers().select_related("parent"), request, pk)
