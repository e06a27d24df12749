"""The tool servers. Everybody sees which tools there are; staff changes what is on the page."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.db import in_db
from apps.mcp import discovery
from apps.mcp.forms import ToolServerForm
from apps.mcp.models import ToolServer


def _require_staff(request: HttpRequest) -> None:
    if not cast(User, request.user).is_staff:
        raise PermissionDenied("Only a staff user may change tool servers.")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(
    request: HttpRequest, form: ToolServerForm | None = None, *, status: int = 200
) -> HttpResponse:
    context = {"servers": ToolServer.objects.all(), "form": form or ToolServerForm()}
    return render(request, "mcp/index.html", context, status=status)


@require_POST
async def add(request: HttpRequest) -> HttpResponse:
    await in_db(_require_staff, request)
    form = await in_db(ToolServerForm, request.POST)
    if not await in_db(form.is_valid):
        return await in_db(_page, request, form, status=422)
    return await _looked_at(request, await in_db(form.save), "was added")


@require_http_methods(["GET", "HEAD", "POST"])
async def edit(request: HttpRequest, pk: int) -> HttpResponse:
    await in_db(_require_staff, request)
    server = await aget_object_or_404(ToolServer, pk=pk)
    name = server.name  # the form writes into the server while it validates
    form = await in_db(ToolServerForm, request.POST or None, instance=server)
    if request.method != "POST" or not await in_db(form.is_valid):
        context = {"server": server, "name": name, "form": form}
        status = 422 if form.is_bound else 200
        return await in_db(render, request, "mcp/edit.html", context, status=status)
    return await _looked_at(request, await in_db(form.save), "was saved")


@require_POST
async def look(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks a server for its tools again: what it says now is offered from the next question on."""
    await in_db(_require_staff, request)
    return await _looked_at(request, await aget_object_or_404(ToolServer, pk=pk), "was asked")


async def _looked_at(request: HttpRequest, server: ToolServer, what: str) -> HttpResponse:
    server = await discovery.look(server)
    if server.error:
        messages.warning(request, f"{server.name} {what}. {server.error}")
    else:
        count = len(server.tools)
        tools = f"{count} tool{'' if count == 1 else 's'}"
        messages.success(request, f"{server.name} {what}: it has {tools}.")
    return redirect("mcp:index")


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    _require_staff(request)
    server = get_object_or_404(ToolServer, pk=pk)
    server.delete()
    messages.success(request, f"{server.name} was removed. What its tools said stays in the chats.")
    return redirect("mcp:index")
