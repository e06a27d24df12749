"""The Servers page. Everyone sees it; admins change it."""

import hashlib
from datetime import timedelta
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.permissions import require_admin
from apps.llm import errors
from apps.llm.addresses import is_valid_key, validate_address
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.entries import same_address
from apps.servers.models import Server, State
from apps.servers.pages import live
from apps.servers.pages.choices import UseChoice, default_choices, fallback_name, parse_choice
from apps.servers.pages.forms import ServerForm
from apps.servers.pages.line import Total
from apps.servers.pages.probe_result import probe_address

ADMINS_ALONE = "Only admins can change servers."
GONE = "This server no longer exists. Choose another."


def _viewer(request: HttpRequest) -> User:
    """The user, without a query: the login was checked before the view."""
    return cast(User, request.user)


async def _servers() -> list[Server]:
    return [server async for server in Server.objects.prefetch_related("defaults")]


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    return await _render_page(request)


async def _render_page(
    request: HttpRequest,
    *,
    form: ServerForm | None = None,
    refused: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the whole page from known facts, without waiting for a server; a poll follows at once.

    Args:
        form: a filled form with its errors.
        refused: by use, the reason why its default was not changed.
    """
    servers = await _servers()
    shown = await live.read_cards(servers, viewer=_viewer(request), ask=False)
    context = {
        "servers": servers,
        "cards": shown,
        "total": Total.of([card.line for card in shown]),
        "choices": default_choices(servers, refused),
        "form": form or await in_db(ServerForm),
    }
    return await in_db(render, request, "servers/index.html", context, status=status)


@require_safe
async def cards(request: HttpRequest) -> HttpResponse:
    """The servers as they are now; 204 if the page already shows them so."""
    html = await _render_cards(request)
    if request.GET.get("seen") == _digest(html):
        return HttpResponse(status=204)
    return HttpResponse(_with_digest(html))


async def _render_cards(request: HttpRequest) -> str:
    viewer = _viewer(request)
    shown = await live.read_cards(await _servers(), viewer=viewer)
    total = Total.of([card.line for card in shown])
    context = {"cards": shown, "user": viewer, "total": total, "oob": True}
    return await in_db(render_to_string, "servers/_server_list.html", context)


def _digest(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()[:16]


def _with_digest(html: str) -> str:
    """Add a hidden field that htmx sends back, so that unchanged cards are not sent again."""
    return f'{html}<input type="hidden" id="seen" name="seen" value="{_digest(html)}">'


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
    html = _with_digest(await _render_cards(request))
    return HttpResponse(html + await in_db(render_to_string, "servers/_status_message.html", said))


_STARTED = {
    services.Action.LOAD: "Loading",
    services.Action.UNLOAD: "Unloading",
    services.Action.WARM: "Warming up",
    services.Action.DOWNLOAD: "Downloading",
    services.Action.DELETE: "Deleting",
}


@require_POST
async def defaults(request: HttpRequest) -> HttpResponse:
    """Set the default and the fallback of each use that the form has."""
    require_admin(request, ADMINS_ALONE)
    servers = await _servers()
    refused = {}
    for choice in default_choices(servers):
        if error := await _set_default(request, choice, servers):
            refused[str(choice.use)] = error
        elif error := await _set_fallback(request, choice, servers):
            refused[fallback_name(choice.use)] = error
    if refused:
        return await _render_page(request, refused=refused, status=422)
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


@require_POST
async def test(request: HttpRequest) -> HttpResponse:
    """Report what answers at the address of the dialog, before it is added.

    The key comes with the button alone: while somebody types, it is sent to nobody.
    """
    require_admin(request, ADMINS_ALONE)
    typed, key = request.POST.get("base_url", ""), request.POST.get("api_key", "")
    context: dict[str, Any] = {"name": request.POST.get("name", ""), "oob": True}
    try:
        address = validate_address(typed)
    except ValueError as error:
        context["address_error"] = str(error)
    else:
        context |= await _test_result(address, key if is_valid_key(key) else "")
        context["name"] = context["name"] or context.get("found_name", "")
        context["had_no_scheme"] = "://" not in typed
    return await in_db(render, request, "servers/add/_found.html", context)


async def _test_result(address: str, key: str) -> dict[str, Any]:
    if twin := await in_db(same_address.find_twin, address, key):
        return {"address_error": same_address.refusal(twin)}
    found = await probe_address(address, key)
    others = await in_db(same_address.entries_at, address)
    return {
        "address": address,
        "found": found,
        "found_name": found.name,
        "warnings": [same_address.warning(entry) for entry in others],
    }


@require_POST
async def check(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a server again what it is, now."""
    require_admin(request, ADMINS_ALONE)
    server = await aget_object_or_404(Server, pk=pk)
    server = await services.refresh_server(server, max_age=timedelta(0))
    said: dict[str, Any] = {"oob": True, "refused": server.state != State.READY}
    said["said"] = f"“{server.name}”: {server.get_state_display().lower()}."
    html = _with_digest(await _render_cards(request))
    return HttpResponse(html + await in_db(render_to_string, "servers/_status_message.html", said))


@require_POST
async def add(request: HttpRequest) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    form = await in_db(ServerForm, request.POST)
    if not await in_db(form.is_valid):
        return await _render_page(request, form=form, status=422)
    server = await services.refresh_server(await in_db(form.save))
    for use in services.Use:
        if use in request.POST.getlist("use"):
            await in_db(services.set_default, server, use)
    _report_state(request, server, "Added")
    for entry in await in_db(same_address.entries_at, server.base_url, but=server.pk):
        messages.warning(request, same_address.warning(entry))
    return redirect(f"{reverse('servers:index')}#server-{server.pk}")


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
    server = await services.refresh_server(await in_db(form.save), max_age=timedelta(0))
    _report_state(request, server, "Saved")
    if form.lost_key:
        messages.warning(
            request,
            "The address was changed, so the stored key was forgotten. Enter it under Edit.",
        )
    return redirect("servers:index")


def _report_state(request: HttpRequest, server: Server, done: str) -> None:
    """Queue a message: a success only where the server can be used."""
    state = server.get_state_display().lower()
    if server.state == State.READY:
        messages.success(request, f"{done} “{server.name}”. Status: {state}.")
        return
    sentences = [f"{done} “{server.name}”. Status: {state}.", server.facts.error]
    messages.warning(request, " ".join(filter(None, sentences)))


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
