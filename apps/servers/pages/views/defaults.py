"""The default server and fallback of each use."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.core.permissions import require_admin
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.models import Server
from apps.servers.pages.choices import UseChoice, default_choices, fallback_name, parse_choice
from apps.servers.pages.views.page import ADMINS_ALONE, read_servers, render_page

GONE = "This server no longer exists. Choose another."


@require_POST
async def defaults(request: HttpRequest) -> HttpResponse:
    """Set the default and the fallback of each use that the form has."""
    require_admin(request, ADMINS_ALONE)
    servers = await read_servers()
    refused = {}
    for choice in default_choices(servers):
        if error := await _set_default(request, choice, servers):
            refused[str(choice.use)] = error
        elif error := await _set_fallback(request, choice, servers):
            refused[fallback_name(choice.use)] = error
    if refused:
        return await render_page(request, refused=refused, status=422)
    return redirect("servers:index")


async def _set_default(request: HttpRequest, choice: UseChoice, servers: list[Server]) -> str:
    """Return why the default cannot be set; "" if it is set, or not to be changed."""
    value = request.POST.get(choice.use, "")
    if value in {"", choice.chosen}:
        return ""
    chosen = parse_choice(value, servers)
    if chosen is None:
        return GONE
    server, model = chosen
    await in_db(services.set_default, server, choice.use, model)
    words = f"{choice.use.label}: {server.name}, {model or 'first available model'}."
    messages.success(request, words)
    return ""


async def _set_fallback(request: HttpRequest, choice: UseChoice, servers: list[Server]) -> str:
    """Return why the fallback cannot be set; "" if it is set, or not to be changed."""
    before = choice.fallback.chosen if choice.fallback else ""
    value = request.POST.get(fallback_name(choice.use), before)
    if value == before:
        return ""
    chosen = parse_choice(value, servers) if value else (None, "")
    if chosen is None:
        return GONE
    server, model = chosen
    try:
        await services.set_fallback(choice.use, server, model)
    except services.FallbackRefused as error:
        return str(error)
    named = f"{server.name}, {model or 'first available model'}" if server else "none"
    messages.success(request, f"{choice.use.label}, fallback: {named}.")
    return ""
