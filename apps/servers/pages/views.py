"""The Servers page. Everybody sees it; staff changes what is on it."""

import hashlib
from datetime import timedelta
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.permissions import require_admin
from apps.llm import errors
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.models import Server, State
from apps.servers.pages import live
from apps.servers.pages.choices import choices, parse
from apps.servers.pages.forms import ServerForm

ADMINS_ALONE = "Only admins can change servers."


def _viewer(request: HttpRequest) -> User:
    """Who looks. No query, and none to wait for: the login was checked before the view."""
    return cast(User, request.user)


async def _servers() -> list[Server]:
    return [server async for server in Server.objects.prefetch_related("defaults")]


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    return await _page(request)


async def _page(
    request: HttpRequest,
    *,
    form: ServerForm | None = None,
    refused: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page, from what is known: it waits for no server. The first poll follows at once.

    Args:
        form: a filled form that shows what is wrong with it.
        refused: why the default of a use was not taken.
    """
    servers = await _servers()
    context = {
        "servers": servers,
        "cards": await live.cards(servers, viewer=_viewer(request), ask=False),
        "choices": choices(servers, refused),
        "form": form or await in_db(ServerForm),
    }
    return await in_db(render, request, "servers/index.html", context, status=status)


@require_safe
async def cards(request: HttpRequest) -> HttpResponse:
    """The servers as they are now; 204 where they are as the page already shows them."""
    html = await _cards(request)
    if request.GET.get("seen") == _mark(html):
        return HttpResponse(status=204)
    return HttpResponse(_marked(html))


async def _cards(request: HttpRequest) -> str:
    viewer = _viewer(request)
    shown = await live.cards(await _servers(), viewer=viewer)
    return await in_db(
        render_to_string, "servers/_server_list.html", {"cards": shown, "user": viewer}
    )


def _mark(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()[:16]


def _marked(html: str) -> str:
    """With a hidden field that htmx sends back, so that nothing is sent where nothing changed."""
    return f'{html}<input type="hidden" id="seen" name="seen" value="{_mark(html)}">'


@require_POST
async def act(request: HttpRequest, pk: int) -> HttpResponse:
    """Loads, unloads or warms up a model, where the server offers it."""
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
    html = _marked(await _cards(request))
    return HttpResponse(html + await in_db(render_to_string, "servers/_status_message.html", said))


_STARTED = {
    services.Action.LOAD: "Loading",
    services.Action.UNLOAD: "Unloading",
    services.Action.WARM: "Warming up",
}


@require_POST
async def defaults(request: HttpRequest) -> HttpResponse:
    """Which server and model does what. A use that is not named stays as it is."""
    require_admin(request, ADMINS_ALONE)
    servers = await _servers()
    refused = {}
    for choice in choices(servers):
        value = request.POST.get(choice.use, "")
        if value in {"", choice.chosen}:
            continue
        chosen = parse(value, servers)
        if chosen is None:
            refused[str(choice.use)] = "This server no longer exists. Choose another."
            continue
        server, model = chosen
        await in_db(services.make_default, server, choice.use, model)
        words = f"{choice.use.label}: {server.name}, {model or 'first available model'}."
        messages.success(request, words)
    if refused:
        return await _page(request, refused=refused, status=422)
    return redirect("servers:index")


@require_POST
async def add(request: HttpRequest) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    form = await in_db(ServerForm, request.POST)
    if not await in_db(form.is_valid):
        return await _page(request, form=form, status=422)
    server = await services.look_at(await in_db(form.save))
    _say_how_it_is(request, server, "was added")
    return redirect("servers:index")


@require_http_methods(["GET", "HEAD", "POST"])
async def edit(request: HttpRequest, pk: int) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    server = await aget_object_or_404(Server, pk=pk)
    name = server.name  # the form writes into the server while it validates
    form = await in_db(ServerForm, request.POST or None, instance=server)
    if request.method != "POST" or not await in_db(form.is_valid):
        server.name = name
        context = {"server": server, "form": form}
        status = 422 if form.is_bound else 200
        return await in_db(render, request, "servers/edit.html", context, status=status)
    server = await services.look_at(await in_db(form.save), max_age=timedelta(0))
    _say_how_it_is(request, server, "was saved")
    if form.lost_key:
        messages.warning(
            request,
            "The address was changed, so the stored key was forgotten. Enter it under Edit.",
        )
    return redirect("servers:index")


def _say_how_it_is(request: HttpRequest, server: Server, done: str) -> None:
    """Green only where it can be used."""
    state = server.get_state_display().lower()
    if server.state == State.READY:
        messages.success(request, f"{server.name} {done}: {state}.")
        return
    error = str(server.facts.get("error") or "")
    messages.warning(request, " ".join(filter(None, [f"{server.name} {done}: {state}.", error])))


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    server = get_object_or_404(Server, pk=pk)
    if server.from_settings:
        messages.error(
            request, f"“{server.name}” is set by an environment variable. Remove it there."
        )
        return redirect("servers:index")
    server.delete()
    messages.success(request, f"Removed “{server.name}”. Chats and jobs are kept.")
    return redirect("servers:index")
