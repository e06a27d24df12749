"""What an admin does on the card of a server: look again, load and unload models."""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import aget_object_or_404
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from apps.core.permissions import require_admin
from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.models import Server, State
from apps.servers.pages.views.page import ADMINS_ALONE, render_cards, with_digest

_STARTED = {
    services.Action.LOAD: "Loading",
    services.Action.UNLOAD: "Unloading",
    services.Action.WARM: "Warming up",
    services.Action.DOWNLOAD: "Downloading",
    services.Action.DELETE: "Deleting",
}


@require_POST
async def act(request: HttpRequest, pk: int) -> HttpResponse:
    """Load, unload, warm up, download or delete a model, where the server offers it."""
    require_admin(request, ADMINS_ALONE)
    server = await aget_object_or_404(Server, pk=pk)
    wanted, model = request.POST.get("action", ""), request.POST.get("model", "")
    try:
        action = services.Action(wanted)
    except ValueError:
        return HttpResponseBadRequest(f"Unknown action {wanted!r}.")
    said: dict[str, Any] = {"oob": True}
    try:
        await in_db(services.start_action, server, model, action)
        said["said"] = f"{_STARTED[action]} {model}…"
    except errors.LLMError as error:
        said |= {"said": str(error), "refused": True}
    html = with_digest(await render_cards(request))
    return HttpResponse(html + await in_db(render_to_string, "servers/_status_message.html", said))


@require_POST
async def check(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a server again what it is, now."""
    require_admin(request, ADMINS_ALONE)
    server = await aget_object_or_404(Server, pk=pk)
    server = await services.refresh_server(server, max_age=timedelta(0))
    said: dict[str, Any] = {"oob": True, "refused": server.state != State.READY}
    said["said"] = f"“{server.name}”: {server.get_state_display().lower()}."
    html = with_digest(await render_cards(request))
    return HttpResponse(html + await in_db(render_to_string, "servers/_status_message.html", said))
