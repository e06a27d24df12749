"""The Servers page as a whole, and its cards as they are polled."""

import hashlib
from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from apps.runtime.async_db import in_db
from apps.servers.models import Server
from apps.servers.pages import live
from apps.servers.pages.choices import default_choices
from apps.servers.pages.forms import ServerForm
from apps.servers.pages.line import Total

ADMINS_ALONE = "Only admins can change servers."


@require_safe
async def index(request: HttpRequest) -> HttpResponse:
    return await render_page(request)


@require_safe
async def cards(request: HttpRequest) -> HttpResponse:
    """The servers as they are now; 204 if the page already shows them so."""
    html = await render_cards(request)
    if request.GET.get("seen") == _digest(html):
        return HttpResponse(status=204)
    return HttpResponse(with_digest(html))


async def read_servers() -> list[Server]:
    """Return all servers with the uses they are the default for."""
    return [server async for server in Server.objects.prefetch_related("defaults")]


def _viewer(request: HttpRequest) -> User:
    """The user, without a query: the login was checked before the view."""
    return cast(User, request.user)


async def render_page(
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
    servers = await read_servers()
    shown = await live.read_cards(servers, viewer=_viewer(request), ask=False)
    context = {
        "servers": servers,
        "cards": shown,
        "total": Total.of([card.line for card in shown]),
        "choices": default_choices(servers, refused),
        "form": form or await in_db(ServerForm),
    }
    return await in_db(render, request, "servers/index.html", context, status=status)


async def render_cards(request: HttpRequest) -> str:
    viewer = _viewer(request)
    shown = await live.read_cards(await read_servers(), viewer=viewer)
    total = Total.of([card.line for card in shown])
    context = {"cards": shown, "user": viewer, "total": total, "oob": True}
    return await in_db(render_to_string, "servers/_server_list.html", context)


def _digest(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()[:16]


def with_digest(html: str) -> str:
    """Add a hidden field that htmx sends back, so that unchanged cards are not sent again."""
    return f'{html}<input type="hidden" id="seen" name="seen" value="{_digest(html)}">'
