"""The list of conversations: search, pins, the archive, tags, deleting many."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.chat.conversations import library, search
from apps.chat.models import Conversation, ConversationQuerySet
from apps.chat.views.conversation import get_conversation, shelf_of
from apps.core.api import owner


@require_safe
def older(request: HttpRequest) -> HttpResponse:
    """The next part of the list."""
    return render(request, "chat/list/_chats.html", shelf_of(request))


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """What was said with these words; without words the list itself."""
    text = request.GET.get("q", "").strip()[:200]
    if not text:
        return render(request, "chat/list/_chats.html", shelf_of(request))
    context = {"hits": search.together(search.find(owner(request), text)), "sought": text}
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
    word = "archived" if found.archived else "restored from the archive"
    messages.success(request, f"“{found}” {word}.")
    return redirect("chat:conversation", pk)


@require_POST
def set_tags(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    try:
        library.set_tags(found, library.tag_names(request.POST.get("tags", "")))
    except library.BadTags as error:
        messages.error(request, str(error))
    return redirect("chat:conversation", pk)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """One thing done to all conversations that were ticked."""
    ticked = _ticked(request)
    count = ticked.count()
    back = redirect("chat:index")
    if not count:
        messages.error(request, "Select at least one chat.")
        return back
    match request.POST.get("action"):
        case "delete":
            first = ticked.values_list("pk", flat=True)[0]
            library.remove(ticked)
            return redirect(f"{reverse('chat:index')}?removed={first}")
        case "archive":
            ticked.update(archived=True)
            messages.success(request, f"{_counted(count)} archived.")
        case "unarchive":
            ticked.update(archived=False)
            messages.success(request, f"{_counted(count)} restored from the archive.")
        case "tag":
            try:
                names = library.tag_names(request.POST.get("tags", ""))
            except library.BadTags as error:
                messages.error(request, str(error))
                return back
            library.add_tags(ticked, names)
            messages.success(request, f"{_counted(count)} tagged.")
        case _:
            messages.error(request, "Choose an action.")
    return back


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Brings back a deleted conversation and those that were deleted with it."""
    gone = Conversation.objects.removed_by(owner(request)).select_related("owner")
    count = library.restore(get_object_or_404(gone, pk=pk))
    messages.success(request, f"{_counted(count)} restored.")
    return redirect("chat:conversation", pk) if count == 1 else redirect("chat:index")


def _ticked(request: HttpRequest) -> ConversationQuerySet:
    ids = [int(pk) for pk in request.POST.getlist("id") if pk.isdecimal()]
    return Conversation.objects.owned_by(owner(request)).filter(pk__in=ids)


def _counted(count: int) -> str:
    return f"{count:,} chat{'' if count == 1 else 's'}"
