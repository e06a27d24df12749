"""The pages of a conversation: starting one, reading it and asking in it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.answering import prefill, titles
from apps.chat.composer import drafts, several, starters
from apps.chat.conversation_list import library
from apps.chat.conversations import model_state
from apps.chat.conversations.branch_view import Branch, MessageView, window
from apps.chat.errors import ChatError
from apps.chat.models import Conversation
from apps.chat.views.chat_list import mark_read, sidebar_context
from apps.chat.views.composer.menus import composer_context
from apps.chat.views.lookups import get_conversation, get_project
from apps.chat.views.thread import refuse, replace_thread, thread_context, whole_thread
from apps.core.api import owner

TITLE_POLLS = 8


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Render an empty conversation."""
    deleted = _just_deleted(request)
    project = get_project(request, request.GET.get("project", ""))
    draft = drafts.draft_of(owner(request), project)
    context = sidebar_context(request, project=project) | {
        "project": project,
        "is_temporary": "temporary" in request.GET,
        "deleted": deleted,
        "deleted_count": library.count_deleted_with(deleted) if deleted else 0,
    }
    context |= model_state.model_context(draft)
    context |= composer_context(draft, context.get("target"))
    context |= starters.start_page(draft, context.get("target"))
    return render(request, "chat/index.html", context)


def _just_deleted(request: HttpRequest) -> Conversation | None:
    """Return the conversation that the last page deleted, while it can be restored."""
    pk = request.GET.get("removed", "")
    deleted = Conversation.objects.deleted_by(owner(request)).select_related("owner")
    return deleted.filter(pk=pk).first() if pk.isdecimal() else None


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Start a chat with its first message, and with the settings of the draft."""
    project = get_project(request, request.POST.get("project", ""))
    draft = drafts.draft_of(owner(request), project)
    content, files = request.POST.get("content", ""), request.POST.getlist("attachment")
    try:
        is_temporary = "temporary" in request.POST
        started = drafts.start_chat(draft, content, files=files, is_temporary=is_temporary)
    except ChatError as error:
        messages.error(request, str(error))
        return redirect("chat:index")
    return redirect("chat:conversation", started.pk)


@require_safe
def conversation(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    key = request.GET.get("message", "")
    target = int(key) if key.isdecimal() else None
    branch = Branch.active(found)
    mark_read(found)
    context = sidebar_context(request, found)
    context |= thread_context(branch, window(branch, target=target))
    context |= composer_context(found, context.get("target"))
    if target is not None and target not in branch.path:
        context["elsewhere"] = found.messages.filter(pk=target, deleted_at=None).first()
    return render(request, "chat/conversation.html", context)


@require_safe
def earlier(request: HttpRequest, pk: int, before: int) -> HttpResponse:
    """Render the messages before one, when a long conversation is scrolled back."""
    branch = Branch.active(get_conversation(request, pk))
    part = window(branch, before=before)
    return render(request, "chat/thread/_messages.html", thread_context(branch, part))


@require_POST
def ask(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a question; render it and its answer, which has started.

    `after` is the last message that the page shows. If the conversation was continued elsewhere,
    nothing is asked, and the current thread is rendered.
    """
    found = get_conversation(request, pk)
    if request.POST.get("after", last := str(found.active_leaf_id or "")) != last:
        return replace_thread(whole_thread(request, pk, status=409, changed_elsewhere=True))
    try:
        question, (answer, *others) = several.ask(
            found, request.POST.get("content", ""), files=request.POST.getlist("attachment")
        )
    except ChatError as error:
        return refuse(request, error)
    if others:
        return replace_thread(whole_thread(request, pk))
    views = [MessageView(question, [question.pk]), MessageView(answer, [answer.pk])]
    return render(request, "chat/thread/_messages.html", {"conversation": found, "views": views})


@require_POST
def prefill_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Let the model server process what is being typed."""
    prefill.start(get_conversation(request, pk), request.POST.get("draft", ""))
    return HttpResponse(status=204)


@require_safe
def title(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the title: the page polls a few times after an answer for a better one."""
    found = get_conversation(request, pk)
    key = request.GET.get("asked", "")
    polls = int(key) if key.isdecimal() else TITLE_POLLS
    polls_again = polls < TITLE_POLLS and titles.may_change(found)
    context = {"conversation": found, "waits": polls_again, "asked": polls + 1}
    return render(request, "chat/list/_title_update.html", context)
