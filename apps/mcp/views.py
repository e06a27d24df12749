"""The tool servers: each person's own, and those for everybody, which staff manages."""

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
from apps.mcp.forms import MOST_OWN, ToolServerForm
from apps.mcp.models import ToolServer
from apps.runtime.async_db import in_db

ADMINS_ALONE = "Only admins can change shared tool servers."

_looking: set[asyncio.Task[ToolServer]] = set()  # the loop itself holds tasks weakly


def _to_change(request: HttpRequest, pk: int) -> ToolServer:
    """Raises Http404 where he does not see it, PermissionDenied where it is not his to change."""
    server = get_object_or_404(ToolServer.objects.seen_by(owner(request).pk), pk=pk)
    if server.owner_id is None:
        require_admin(request, ADMINS_ALONE)
    else:
        _require_own()
    return server


def _require_own() -> None:
    if not settings.MCP_OWN:
        raise PermissionDenied("Personal tool servers are switched off here (WORKBENCH_MCP_OWN).")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _form(server: ToolServer, given: Any = None) -> ToolServerForm:
    """Its fields' ids tell the two forms of the page apart."""
    ids = "id_%s" if server.owner_id is None else "own_%s"
    return ToolServerForm(given, instance=server, auto_id=ids)


def _page(
    request: HttpRequest, refused: ToolServerForm | None = None, *, status: int = 200
) -> HttpResponse:
    person = owner(request)
    seen = list(ToolServer.objects.seen_by(person.pk))
    shared, own = ToolServer(), ToolServer(owner=person)
    is_own = refused is not None and refused.instance.owner_id is not None
    context = {
        "shared": [server for server in seen if server.owner_id is None],
        "own": [server for server in seen if server.owner_id is not None],
        "shared_form": refused if refused and not is_own else _form(shared),
        "own_form": refused if refused and is_own else _form(own),
        "most_own": MOST_OWN,
        "may_have_own": settings.MCP_OWN,
    }
    return render(request, "mcp/index.html", context, status=status)


@require_POST
@limited("looks")
async def add(request: HttpRequest) -> HttpResponse:
    """For everybody."""
    await in_db(require_admin, request, ADMINS_ALONE)
    return await _added(request, ToolServer())


@require_POST
@limited("looks")
async def add_own(request: HttpRequest) -> HttpResponse:
    _require_own()
    return await _added(request, ToolServer(owner=await in_db(owner, request)))


async def _added(request: HttpRequest, server: ToolServer) -> HttpResponse:
    form = await in_db(_form, server, request.POST)
    if not await in_db(form.is_valid):
        return await in_db(_page, request, form, status=422)
    return await _looked_at(request, await in_db(form.save), "added")


@require_http_methods(["GET", "HEAD", "POST"])
@limited("looks")
async def edit(request: HttpRequest, pk: int) -> HttpResponse:
    server = await in_db(_to_change, request, pk)
    name = server.name  # the form writes into the server while it validates
    form = await in_db(_form, server, request.POST or None)
    if request.method != "POST" or not await in_db(form.is_valid):
        context = {"server": server, "name": name, "form": form}
        status = 422 if form.is_bound else 200
        return await in_db(render, request, "mcp/edit.html", context, status=status)
    return await _looked_at(request, await in_db(form.save), "saved")


@require_POST
@limited("looks")
async def look(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks a server for its tools again: what it says now is offered from the next question on."""
    return await _looked_at(request, await in_db(_to_change, request, pk), "refreshed")


async def _looked_at(request: HttpRequest, server: ToolServer, what: str) -> HttpResponse:
    # Also when the page is left meanwhile: else it would stay "not asked yet". In a context of its
    # own: the request's would bind it to the thread that ends with the request.
    looking = asyncio.create_task(discovery.look(server), context=contextvars.Context())
    _looking.add(looking)
    looking.add_done_callback(_looking.discard)
    server = await asyncio.shield(looking)
    if server.error:
        messages.warning(request, f"{server.name} {what}. {server.error}")
    else:
        count = len(server.tools)
        tools = f"{count} tool{'' if count == 1 else 's'}"
        messages.success(request, f"{server.name} {what}: {tools}.")
    return redirect("mcp:index")


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Also one's own where they are switched off: what is stored may go."""
    server = get_object_or_404(ToolServer.objects.seen_by(owner(request).pk), pk=pk)
    if server.owner_id is None:
        require_admin(request, ADMINS_ALONE)
    server.delete()
    messages.success(request, f"Removed “{server.name}”. Results of its tools stay in your chats.")
    return redirect("mcp:index")
