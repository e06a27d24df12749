"""Pages of the tool servers: personal ones, and shared ones, which admins manage."""

import asyncio
import contextvars
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api import owner
from apps.core.permissions import require_admin
from apps.core.quotas import limited
from apps.mcp import discovery
from apps.mcp.forms import MAX_OWN, ToolServerForm
from apps.mcp.models import ToolServer
from apps.runtime.async_db import in_db

ADMINS_ONLY = "Only admins can change shared tool servers."

_refreshes: set[asyncio.Task[ToolServer]] = set()  # the loop itself holds tasks weakly


def _get_editable(request: HttpRequest, pk: int) -> ToolServer:
    """Return a server that the requester may change.

    Raises:
        Http404: the server is not visible to them.
        PermissionDenied: they may not change it.
    """
    server = get_object_or_404(ToolServer.objects.visible_to(owner(request).pk), pk=pk)
    if server.owner_id is None:
        require_admin(request, ADMINS_ONLY)
    else:
        _require_own()
    return server


def _require_own() -> None:
    if not settings.MCP_OWN:
        raise PermissionDenied("Personal tool servers are disabled here (WORKBENCH_MCP_OWN).")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _form(server: ToolServer, data: Any = None) -> ToolServerForm:
    """Return the form; its field ids differ between the two forms of the page."""
    ids = "id_%s" if server.owner_id is None else "own_%s"
    return ToolServerForm(data, instance=server, auto_id=ids)


def _page(
    request: HttpRequest, invalid: ToolServerForm | None = None, *, status: int = 200
) -> HttpResponse:
    person = owner(request)
    seen = list(ToolServer.objects.visible_to(person.pk))
    shared, own = ToolServer(), ToolServer(owner=person)
    is_own = invalid is not None and invalid.instance.owner_id is not None
    context = {
        "shared": [server for server in seen if server.owner_id is None],
        "own": [server for server in seen if server.owner_id is not None],
        "shared_form": invalid if invalid and not is_own else _form(shared),
        "own_form": invalid if invalid and is_own else _form(own),
        "max_own": MAX_OWN,
        "personal_allowed": settings.MCP_OWN,
    }
    return render(request, "mcp/index.html", context, status=status)


@require_POST
@limited("looks")
async def add(request: HttpRequest) -> HttpResponse:
    """Add a shared server."""
    await in_db(require_admin, request, ADMINS_ONLY)
    return await _create(request, ToolServer())


@require_POST
@limited("looks")
async def add_own(request: HttpRequest) -> HttpResponse:
    _require_own()
    return await _create(request, ToolServer(owner=await in_db(owner, request)))


async def _create(request: HttpRequest, server: ToolServer) -> HttpResponse:
    form = await in_db(_form, server, request.POST)
    if not await in_db(form.is_valid):
        return await in_db(_page, request, form, status=422)
    return await _refresh_and_redirect(request, await in_db(form.save), "added")


@require_http_methods(["GET", "HEAD", "POST"])
@limited("looks")
async def edit(request: HttpRequest, pk: int) -> HttpResponse:
    server = await in_db(_get_editable, request, pk)
    name = server.name  # the form writes into the server while it validates
    form = await in_db(_form, server, request.POST or None)
    if request.method != "POST" or not await in_db(form.is_valid):
        context = {"server": server, "name": name, "form": form}
        status = 422 if form.is_bound else 200
        return await in_db(render, request, "mcp/edit.html", context, status=status)
    return await _refresh_and_redirect(request, await in_db(form.save), "saved")


@require_POST
@limited("looks")
async def refresh(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the server for its tools again; the next message offers the new ones."""
    return await _refresh_and_redirect(
        request, await in_db(_get_editable, request, pk), "refreshed"
    )


async def _refresh_and_redirect(
    request: HttpRequest, server: ToolServer, done: str
) -> HttpResponse:
    # Shielded, because a closed page must not leave the server "Not checked". In a context of its
    # own, because the request's would bind it to the thread that ends with the request.
    refreshing = asyncio.create_task(discovery.refresh_tools(server), context=contextvars.Context())
    _refreshes.add(refreshing)
    refreshing.add_done_callback(_refreshes.discard)
    server = await asyncio.shield(refreshing)
    if server.error:
        messages.warning(request, f"{server.name} {done}. {server.error}")
    else:
        count = len(server.tools)
        tools = f"{count} tool{'' if count == 1 else 's'}"
        messages.success(request, f"{server.name} {done}: {tools}.")
    return redirect("mcp:index")


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a server; a personal one also while personal servers are disabled."""
    server = get_object_or_404(ToolServer.objects.visible_to(owner(request).pk), pk=pk)
    if server.owner_id is None:
        require_admin(request, ADMINS_ONLY)
    server.delete()
    messages.success(request, f"Removed “{server.name}”. Results of its tools stay in your chats.")
    return redirect("mcp:index")
