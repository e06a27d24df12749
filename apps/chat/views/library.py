"""The list of conversations: search, pins, archive, tags, bulk actions."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversations import library, search
from apps.chat.models import Conversation, ConversationQuerySet, Tag
from apps.chat.views.lookups import get_conversation
from apps.core.api import owner

LIST_LENGTH = 50


@require_safe
def older(request: HttpRequest) -> HttpResponse:
    """Render the next part of the list."""
    return render(request, "chat/list/_chats.html", list_context(request))


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Render the hits of a search; without words the list itself."""
    text = request.GET.get("q", "").strip()[:200]
    if not text:
        return render(request, "chat/list/_chats.html", list_context(request))
    context = {
        "hits": search.group_by_conversation(search.find(owner(request), text)),
        "query": text,
    }
    return render(request, "chat/list/_search_results.html", context)


@require_POST
def pin(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    found.pinned = not found.pinned
    found.save(update_fields=["pinned"])
    return redirect("chat:conversation", pk)


@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    found.archived = not found.archived
    found.save(update_fields=["archived"])
    word = "archived" if found.archived else "unarchived"
    messages.success(request, f"“{found}” {word}.")
    return redirect("chat:conversation", pk)


@require_POST
def set_tags(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    try:
        library.set_tags(found, library.parse_tags(request.POST.get("tags", "")))
    except library.BadTags as error:
        messages.error(request, str(error))
    return redirect("chat:conversation", pk)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Apply one action to all selected conversations."""
    selected = _selected(request)
    count = selected.count()
    back = redirect("chat:index")
    if not count:
        messages.error(request, "Select at least one chat.")
        return back
    match request.POST.get("action"):
        case "delete":
            first = selected.values_list("pk", flat=True)[0]
            library.delete(selected)
            return redirect(f"{reverse('chat:index')}?removed={first}")
        case "archive":
            selected.update(archived=True)
            messages.success(request, f"{_count_chats(count)} archived.")
        case "unarchive":
            selected.update(archived=False)
            messages.success(request, f"{_count_chats(count)} unarchived.")
        case "tag":
            try:
                names = library.parse_tags(request.POST.get("tags", ""))
            except library.BadTags as error:
                messages.error(request, str(error))
                return back
            library.add_tags(selected, names)
            messages.success(request, f"{_count_chats(count)} tagged.")
        case _:
            messages.error(request, "Choose an action.")
    return back


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Restore a deleted conversation and those that were deleted with it."""
    deleted = Conversation.objects.deleted_by(owner(request)).select_related("owner")
    count = library.restore(get_object_or_404(deleted, pk=pk))
    messages.success(request, f"{_count_chats(count)} restored.")
    return redirect("chat:conversation", pk) if count == 1 else redirect("chat:index")


def _selected(request: HttpRequest) -> ConversationQuerySet:
    ids = [int(pk) for pk in request.POST.getlist("id") if pk.isdecimal()]
    return Conversation.objects.owned_by(owner(request)).filter(pk__in=ids)


def _count_chats(count: int) -> str:
    return f"{count:,} chat{'' if count == 1 else 's'}"


def sidebar_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context that every page of the chat needs."""
    return list_context(request) | {"tags": Tag.objects.owned_by(owner(request))}


def list_context(request: HttpRequest) -> dict[str, Any]:
    """Return the part of the list that the query string names."""
    query = {name: request.GET.get(name, "") for name in ("tag", "archived", "from")}
    tag = int(query["tag"]) if query["tag"].isdecimal() else None
    start = int(query["from"]) if query["from"].isdecimal() else 0
    rows = library.list_conversations(owner(request), tag=tag, archived=bool(query["archived"]))
    found = list(rows.only("title", "pinned", "owner")[start : start + LIST_LENGTH + 1])
    return {
        "conversations": found[:LIST_LENGTH],
        "next_start": start + LIST_LENGTH if len(found) > LIST_LENGTH else None,
        "tag": tag,
        "archived": bool(query["archived"]),
    }
