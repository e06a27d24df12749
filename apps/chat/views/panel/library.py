"""Actions on conversations in the list: pins, archive, tags, projects, Delete with Undo.

A request of htmx comes from the list: the list is rendered again. Without it the page follows.
"""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.chat.conversation_list import library
from apps.chat.conversations import services
from apps.chat.models import TITLE_LENGTH, Conversation, ConversationQuerySet
from apps.chat.views.chat_list import open_page_key, render_list
from apps.chat.views.lookups import get_conversation, get_project
from apps.core.api import owner


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    if title := request.POST.get("title", "").strip()[:TITLE_LENGTH]:
        found.title = title
        found.save(update_fields=["title"])
    if "from_list" in request.POST:
        context = {"conversation": found, "is_open": open_page_key(request) == pk}
        return render(request, "chat/list/_renamed.html", context)
    return render(request, "chat/list/_title.html", {"conversation": found, "renamed": True})


@require_POST
def pin(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    found.pinned = not found.pinned
    found.save(update_fields=["pinned"])
    return _done(request, found)


@require_POST
def archive(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    found.archived = not found.archived
    found.save(update_fields=["archived"])
    return _done(request, found, f"“{found}” {'archived' if found.archived else 'unarchived'}.")


@require_POST
def set_tags(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    try:
        library.set_tags(found, library.parse_tags(request.POST.get("tags", "")))
    except library.BadTags as error:
        if _is_from_list(request):
            return render_list(request, error=str(error))
        messages.error(request, str(error))
    return _done(request, found)


@require_POST
def move(request: HttpRequest, pk: int) -> HttpResponse:
    """Move a conversation to the project that the form names, or out of its project."""
    found = get_conversation(request, pk)
    found.project = get_project(request, request.POST.get("project", ""))
    found.save(update_fields=["project"])
    where = f"moved to “{found.project}”" if found.project else "moved out of its project"
    return _done(request, found, f"“{found}” {where}.")


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a conversation; the list, or the next page, offers Undo. A temporary one is gone."""
    found = get_conversation(request, pk)
    if found.temporary_until is not None:
        services.delete(found)
        messages.success(request, "Temporary chat deleted.")
        return redirect("chat:index")
    library.delete(Conversation.objects.owned_by(owner(request)).filter(pk=pk))
    return _deleted(request, found, {pk})


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Apply one action to all selected conversations."""
    selected = _selected(request)
    count = selected.count()
    if not count:
        return _refused(request, "Select at least one chat.")
    match request.POST.get("action"):
        case "delete":
            keys = set(selected.values_list("pk", flat=True))
            first = selected.select_related("owner")[0]
            library.delete(selected)
            return _deleted(request, first, keys)
        case "archive":
            selected.update(archived=True)
            done = "archived"
        case "unarchive":
            selected.update(archived=False)
            done = "unarchived"
        case "move":
            project = get_project(request, request.POST.get("project", ""))
            selected.update(project=project)
            done = f"moved to “{project}”" if project else "moved out of their project"
        case "tag":
            try:
                names = library.parse_tags(request.POST.get("tags", ""))
            except library.BadTags as error:
                return _refused(request, str(error))
            library.add_tags(selected, names)
            done = "tagged"
        case _:
            return _refused(request, "Choose an action.")
    return _done(request, None, f"{_count_chats(count)} {done}.")


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Restore a deleted conversation and those that were deleted with it."""
    deleted = Conversation.objects.deleted_by(owner(request)).select_related("owner")
    count = library.restore(get_object_or_404(deleted, pk=pk))
    sentence = f"{_count_chats(count)} restored."
    if _is_from_list(request):
        return render_list(request, done=sentence)
    messages.success(request, sentence)
    return redirect("chat:conversation", pk) if count == 1 else redirect("chat:index")


def _selected(request: HttpRequest) -> ConversationQuerySet:
    ids = [int(pk) for pk in request.POST.getlist("id") if pk.isdecimal()]
    return Conversation.objects.owned_by(owner(request)).filter(pk__in=ids)


def _is_from_list(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers


def _done(request: HttpRequest, found: Conversation | None, sentence: str = "") -> HttpResponse:
    """Return the list with a sentence, or the page of the conversation."""
    if _is_from_list(request):
        return render_list(request, done=sentence)
    if sentence:
        messages.success(request, sentence)
    return redirect("chat:conversation", found.pk) if found else redirect("chat:index")


def _deleted(request: HttpRequest, found: Conversation, keys: set[int]) -> HttpResponse:
    """Return the list with Undo; the start page if the conversation that is open was deleted."""
    address = f"{reverse('chat:index')}?removed={found.pk}"
    if not _is_from_list(request):
        return redirect(address)
    if open_page_key(request) in keys:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = address
        return response
    toast: dict[str, Any] = {"deleted": found, "deleted_count": len(keys)}
    return render_list(request, **toast)


def _refused(request: HttpRequest, sentence: str) -> HttpResponse:
    if _is_from_list(request):
        return render_list(request, error=sentence)
    messages.error(request, sentence)
    return redirect("chat:index")


def _count_chats(count: int) -> str:
    return f"{count:,} chat{'' if count == 1 else 's'}"
