"""Answers: their state, stopping and regenerating them, and switching branches."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.chat.answering import titles
from apps.chat.conversations import model_state, services
from apps.chat.conversations.branch_view import Branch, Window, view_of
from apps.chat.conversations.context_meter import ContextMeter
from apps.chat.conversations.ratings import RATINGS
from apps.chat.conversations.ratings import rate as rate_answer
from apps.chat.errors import ChatError
from apps.chat.models import Message, Status
from apps.chat.views.lookups import get_answer, get_conversation, get_message
from apps.chat.views.thread import refuse, replace_thread, thread_context, whole_thread
from apps.llm.thinking import ThinkingSetting, parse_thinking


@require_safe
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Render one answer: the page asks for it when the events have ended.

    `part=end`: only what is below its text, which the page has. Other parts of the page that
    depend on its end come along; if its prompt was cut, the thread.
    """
    found = get_answer(request, pk)
    conversation = get_conversation(request, found.conversation_id)
    context = thread_context(Branch.active(conversation), Window([], 0))
    if found.is_finished and _was_cut(found, context.get("meter")):
        return replace_thread(whole_thread(request, conversation.pk))
    context |= {"item": view_of(found), "message": found}
    if found.status == Status.FAILED:  # perhaps because its server is offline
        context |= model_state.fresh_model_context(conversation)
    context["is_text_kept"] = found.is_finished and request.GET.get("part") == "end"
    context["title_may_change"] = found.is_finished and titles.may_change(conversation)
    return render(request, "chat/thread/answer/_answer_finished.html", context)


def _was_cut(answer: Message, meter: ContextMeter | None) -> bool:
    """Return True if the prompt of the newest answer was cut elsewhere than the one before it."""
    if meter is None or meter.turns[-1].answer != answer.pk:
        return False
    before = meter.turns[-2].cut_before_message if len(meter.turns) > 1 else None
    return answer.cut_before_message != before


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop an answer. The page learns of the end from its events."""
    services.stop(get_answer(request, pk))
    return HttpResponse(status=204)


@require_POST
def answer_now(request: HttpRequest, pk: int) -> HttpResponse:
    """End the thinking of an answer. The page sees its text in the answer's events."""
    services.answer_now(get_answer(request, pk))
    return HttpResponse(status=204)


@require_POST
def regenerate(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_answer(request, pk)
    try:
        services.regenerate(found, thinking=_thinking(request))
    except ChatError as error:
        return refuse(request, error)
    return whole_thread(request, found.conversation_id)


def _thinking(request: HttpRequest) -> ThinkingSetting | None:
    try:
        return parse_thinking(request.POST.get("thinking", ""))
    except ValueError:
        return None


@require_POST
def rate(request: HttpRequest, pk: int) -> HttpResponse:
    """Save or take back a rating. After a rating its note can be written."""
    found = get_answer(request, pk)
    asked = request.POST.get("rating", "")
    word = next((word for word in RATINGS if word == asked), None)
    note = request.POST.get("note")
    is_same = note is None and word == found.rating_word
    rate_answer(found, None if is_same else word, note or "")
    context = {"message": found, "asks_note": note is None and found.rating is not None}
    return render(request, "chat/thread/answer/_rating.html", context)


@require_POST
def show(request: HttpRequest, pk: int) -> HttpResponse:
    """Activate the branch through a message."""
    found = get_message(request, pk)
    services.show_branch(found)
    return whole_thread(request, found.conversation_id)
