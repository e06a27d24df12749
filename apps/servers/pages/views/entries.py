"""Adding, editing and removing servers."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.permissions import require_admin
from apps.llm.addresses import is_valid_key, validate_address
from apps.runtime.async_db import in_db
from apps.servers import services
from apps.servers.entries import same_address
from apps.servers.models import Server, State
from apps.servers.pages.forms import ServerForm
from apps.servers.pages.probe_result import probe_address
from apps.servers.pages.views.page import ADMINS_ALONE, render_page


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
async def add(request: HttpRequest) -> HttpResponse:
    require_admin(request, ADMINS_ALONE)
    form = await in_db(ServerForm, request.POST)
    if not await in_db(form.is_valid):
        return await render_page(request, form=form, status=422)
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
