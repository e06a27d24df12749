import asyncio

from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.core.db import in_db
from apps.llm import services
from apps.llm.forms import ServerForm
from apps.llm.models import Server, Use


def _require_staff(user: AbstractBaseUser | AnonymousUser) -> None:
    if not getattr(user, "is_staff", False):
        raise PermissionDenied("Only a staff user may change servers.")


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return render(
        request,
        "llm/index.html",
        {"servers": Server.objects.prefetch_related("defaults"), "form": ServerForm()},
    )


@require_safe
async def cards(request: HttpRequest) -> HttpResponse:
    """The servers as they are now. The page asks again every few seconds while somebody looks."""
    servers = [server async for server in Server.objects.prefetch_related("defaults")]
    servers = await asyncio.gather(*map(services.look_at, servers))
    slots = await asyncio.gather(*map(services.slots_of, servers))
    pairs = list(zip(servers, slots, strict=True))
    return await in_db(render, request, "llm/_cards.html", {"pairs": pairs, "uses": Use})


@require_POST
def make_default(request: HttpRequest, pk: int) -> HttpResponse:
    _require_staff(request.user)
    server = get_object_or_404(Server, pk=pk)
    use = request.POST.get("use", "")
    if use not in Use.values:
        return HttpResponseBadRequest(f"There is no use {use!r}.")
    services.make_default(server, Use(use))
    messages.success(request, f"{server.name} is now the default for {Use(use).label.lower()}.")
    return redirect("llm:index")


@require_POST
async def add(request: HttpRequest) -> HttpResponse:
    _require_staff(await request.auser())
    form = ServerForm(request.POST)
    if not await in_db(form.is_valid):
        servers = [server async for server in Server.objects.prefetch_related("defaults")]
        context = {"servers": servers, "form": form}
        return await in_db(render, request, "llm/index.html", context, status=422)
    server = await services.look_at(await in_db(form.save))
    messages.success(request, f"{server.name} was added: {server.get_state_display()}.")
    return redirect("llm:index")


@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    _require_staff(request.user)
    server = get_object_or_404(Server, pk=pk)
    server.delete()
    messages.success(request, f"{server.name} was removed. Conversations and jobs stay.")
    return redirect("llm:index")
