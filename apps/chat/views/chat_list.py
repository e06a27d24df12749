"""The chat list of the current user, as a part of every chat page and as fragments."""

import re
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversation_list import list_rows, search
from apps.chat.models import Conversation, Project, Tag
from apps.chat.views.lookups import get_conversation
from apps.core.api import owner

LIST_LENGTH = 50
MAX_SHOWN = 2000
PROJECTS_SHOWN = 6  # more would push the chats out of sight
ZONE_COOKIE = "timezone"


def sidebar_context(
    request: HttpRequest, current: Conversation | None = None, project: Project | None = None
) -> dict[str, Any]:
    """Return the template context that every page of the chat needs.

    Args:
        current: the conversation that the page shows.
        project: the project that it shows.
    """
    opened = project.pk if project else current.project_id if current else None
    return {"conversation": current} | list_context(request) | _sections(request, opened)


def _sections(request: HttpRequest, opened: int | None) -> dict[str, Any]:
    """Return the projects, one of which is open, and the tags."""
    user = owner(request)
    listed = Q(
        conversations__deleted_at=None,
        conversations__temporary_until=None,
        conversations__archived=False,
    )
    mine = Project.objects.owned_by(user)
    projects = list(mine.annotate(chats=Count("conversations", filter=listed)))
    first, others = projects[:PROJECTS_SHOWN], projects[PROJECTS_SHOWN:]
    return {
        "projects": first,
        "other_projects": others,
        "opens_others": any(one.pk == opened for one in others),
        "open_project": opened,
        "project_rows": list_rows.read_rows(
            user, now=local_now(request), grouped=False, length=LIST_LENGTH, project=opened
        )
        if opened
        else [],
        "tags": Tag.objects.owned_by(user),
    }


def list_context(request: HttpRequest) -> dict[str, Any]:
    """Return the part of the list that the query string names."""
    query = {name: request.GET.get(name, "") for name in ("tag", "archived", "from")}
    tag = int(query["tag"]) if query["tag"].isdecimal() else None
    start = int(query["from"]) if query["from"].isdecimal() else 0
    archived, now = bool(query["archived"]), local_now(request)
    rows = list_rows.read_rows(
        owner(request),
        now=now,
        start=start,
        length=LIST_LENGTH + 1,
        heading=request.GET.get("under", ""),
        tag=tag,
        archived=archived,
    )
    shown = rows[:LIST_LENGTH]
    more = ""
    if len(rows) > LIST_LENGTH:
        last = list_rows.heading_of(shown[-1].conversation, now)
        more = urlencode(
            {"from": start + LIST_LENGTH, "under": last}
            | ({"tag": tag} if tag else {})
            | ({"archived": 1} if archived else {})
        )
    return {"rows": shown, "more": more, "tag": tag, "archived": archived}


def local_now(request: HttpRequest) -> datetime:
    """Return the time in the time zone that the browser has reported; UTC until it has."""
    return timezone.now().astimezone(list_rows.zone_of(request.COOKIES.get(ZONE_COOKIE, "")))


@require_safe
def older(request: HttpRequest) -> HttpResponse:
    """Render the next part of the list."""
    return render(request, "chat/list/_chats.html", list_context(request) | {"conversation": None})


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Render the hits of a search, one per conversation."""
    text = request.GET.get("q", "").strip()[:200]
    context = {
        "hits": search.group_by_conversation(search.find(owner(request), text)),
        "query": text,
    }
    return render(request, "chat/list/_search_results.html", context)


@require_safe
def states(request: HttpRequest) -> HttpResponse:
    """Render the states of the rows that a page shows, while answers are being written.

    `shown` has their keys, separated by commas.
    """
    user = owner(request)
    keys = re.findall(r"\d{1,18}", request.GET.get("shown", ""))[:MAX_SHOWN]
    context = {
        "rows": list_rows.rows_of(user, {int(key) for key in keys}),
        "is_writing": bool(list_rows.writing_keys(user)),
        "needs_attention": list_rows.needs_attention(user),
    }
    return render(request, "chat/list/_states.html", context)


@require_POST
def read(request: HttpRequest, pk: int) -> HttpResponse:
    """Mark a conversation as read: its page has shown the new answer."""
    mark_read(get_conversation(request, pk))
    return HttpResponse(status=204)


def mark_read(conversation: Conversation) -> None:
    if conversation.unread:
        Conversation.objects.filter(pk=conversation.pk).update(unread=False)
        conversation.unread = False


@require_safe
def menu(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the actions on one row."""
    context = {
        "conversation": get_conversation(request, pk),
        "projects": Project.objects.owned_by(owner(request)),
        "from_list": True,
    }
    return render(request, "chat/list/_chat_menu.html", context)


@require_safe
def project_chats(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the conversations of a project, when it is opened in the list."""
    rows = list_rows.read_rows(
        owner(request), now=local_now(request), grouped=False, length=LIST_LENGTH, project=pk
    )
    context = {"rows": rows, "more": "", "conversation": current_conversation(request)}
    return render(request, "chat/list/_chats.html", context)


def render_list(request: HttpRequest, **toast: Any) -> HttpResponse:
    """Render the whole list after a change, and what the page reports.

    Args:
        toast: `done`, a sentence; `deleted`, a conversation to offer Undo for.
    """
    response = render(request, "chat/list/_list_update.html", _whole_list(request) | toast)
    response["HX-Retarget"], response["HX-Reswap"] = "#chat-links", "innerHTML"
    return response


def _whole_list(request: HttpRequest) -> dict[str, Any]:
    return sidebar_context(request, current_conversation(request))


def current_conversation(request: HttpRequest) -> Conversation | None:
    """Return the conversation whose page sent this request."""
    key = open_page_key(request)
    return Conversation.of(owner(request), key) if key else None


def open_page_key(request: HttpRequest) -> int | None:
    """Return the key of that conversation, from the address that htmx reports."""
    found = re.search(r"/chat/(\d{1,18})/", request.headers.get("HX-Current-URL", ""))
    return int(found[1]) if found else None
