from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.chat.answering import prefill, runner, titles
from apps.chat.conversations import context_meter, cuts, library, model_state, presets, services
from apps.chat.models import TITLE_LENGTH, Conversation, Message, Preset, Status, SystemPrompt, Tag
from apps.core.api import get_owned, owner

LIST_LENGTH = 50
TITLE_LOOKS = 8

# What the built-in demo model knows about, and what any model can answer.
SUGGESTIONS = (
    "How do I connect my own server?",
    "What is the prompt cache?",
    "What is macro F1?",
    "Write a positive review of a toaster as JSON.",
)


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """An empty conversation, to be begun."""
    context = page_of(request) | {
        "prompts": services.system_prompts_of(owner(request)),
        "presets": Preset.objects.owned_by(owner(request)),
        "servers": presets.choices(),
        "suggestions": SUGGESTIONS,
        "chosen": request.GET.get("prompt", ""),
        "removed": (removed := _removed(request)),
        "removed_count": library.gone_with(removed) if removed else 0,
    }
    context |= model_state.head_of(Conversation(), reverse("chat:model_selection"))
    return render(request, "chat/index.html", context)


def _removed(request: HttpRequest) -> Conversation | None:
    """The conversation that the last page took away, while it can still come back."""
    pk = request.GET.get("removed", "")
    gone = Conversation.objects.removed_by(owner(request)).select_related("owner")
    return gone.filter(pk=pk).first() if pk.isdecimal() else None


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """The first question of a new conversation."""
    preset = get_preset(request, request.POST.get("preset", ""))
    try:
        server, model = presets.begun_with(preset, request.POST.get("model", ""))
    except presets.NotThere as error:
        messages.error(request, str(error))
        return redirect("chat:index")
    prompt = get_prompt(request, request.POST.get("system_prompt", ""))
    content = request.POST.get("content", "")
    try:
        services.asked(content)
    except services.ChatError as error:
        messages.error(request, str(error))
        return redirect("chat:index")
    conversation = services.open_conversation(
        owner=owner(request),
        server=server,
        model=model,
        system_prompt=prompt or preset.system_prompt,
        params=preset.params,
        response_format=preset.response_format,
    )
    try:
        services.ask(conversation, content, files=request.POST.getlist("attachment"))
    except services.ChatError as error:
        conversation.delete()
        messages.error(request, str(error))
        return redirect("chat:index")
    except Exception:
        conversation.delete()
        raise
    return redirect("chat:conversation", conversation.pk)


@require_safe
def conversation(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    asked = request.GET.get("message", "")
    sought = int(asked) if asked.isdecimal() else None
    branch = services.Branch.active(found)
    context = page_of(request) | _thread(branch, services.window(branch, sought=sought))
    if sought is not None and sought not in branch.path:
        context["elsewhere"] = found.messages.filter(pk=sought, deleted_at=None).first()
    return render(request, "chat/conversation.html", context)


@require_safe
def earlier(request: HttpRequest, pk: int, before: int) -> HttpResponse:
    """The messages before one: a long conversation is fetched as it is scrolled back."""
    found = get_conversation(request, pk)
    branch = services.Branch.active(found)
    part = services.window(branch, before=before)
    return render(request, "chat/thread/_messages.html", _thread(branch, part))


@require_POST
def ask(request: HttpRequest, pk: int) -> HttpResponse:
    """One more question: returns it and its answer, which is being written.

    `after` is the last message that the page shows: where the conversation has gone on elsewhere,
    nothing is asked, and the thread is shown as it is now.
    """
    found = get_conversation(request, pk)
    if request.POST.get("after", last := str(found.active_leaf_id or "")) != last:
        return in_place_of_thread(whole_thread(request, pk, status=409, went_on=True))
    try:
        question, answer = services.ask(
            found, request.POST.get("content", ""), files=request.POST.getlist("attachment")
        )
    except services.ChatError as error:
        return refused(request, error)
    shown = [services.Shown(question, [question.pk]), services.Shown(answer, [answer.pk])]
    return render(request, "chat/thread/_messages.html", {"conversation": found, "shown": shown})


@require_POST
def read_ahead(request: HttpRequest, pk: int) -> HttpResponse:
    """The page tells what is being written, for the model server to read beforehand."""
    prefill.begin(get_conversation(request, pk), request.POST.get("draft", ""))
    return HttpResponse(status=204)


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_conversation(request, pk)
    if title := request.POST.get("title", "").strip()[:TITLE_LENGTH]:
        found.title = title
        found.save(update_fields=["title"])
    return render(request, "chat/list/_title.html", {"conversation": found, "renamed": True})


@require_safe
def title(request: HttpRequest, pk: int) -> HttpResponse:
    """The page asks a few times, after an answer, whether its conversation got a better title."""
    found = get_conversation(request, pk)
    asked = request.GET.get("asked", "")
    times = int(asked) if asked.isdecimal() else TITLE_LOOKS
    waits = times < TITLE_LOOKS and titles.may_come(found)
    context = {"conversation": found, "waits": waits, "asked": times + 1}
    return render(request, "chat/list/_title_update.html", context)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes it away, and offers to undo that on the page that follows."""
    library.remove(Conversation.objects.filter(pk=get_conversation(request, pk).pk))
    return redirect(f"{reverse('chat:index')}?removed={pk}")


@require_safe
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """One answer as it is now: the page asks for it when the events have ended.

    What else of the page follows from its end comes along; where its prompt was cut, the thread.
    """
    found = _get_answer(request, pk)
    runner.settle([found])
    conversation = get_conversation(request, found.conversation_id)
    branch = services.Branch.active(conversation)
    context = _thread(branch, services.Window([], 0))
    if found.is_finished and _has_cut(found, context.get("meter")):
        return in_place_of_thread(whole_thread(request, conversation.pk))
    context |= {"item": services.place_of(found), "message": found}
    if found.status == Status.FAILED:  # perhaps because its server is not there any more
        context |= model_state.head_now(conversation)
    context["title_may_come"] = found.is_finished and titles.may_come(conversation)
    return render(request, "chat/thread/_answer_finished.html", context)


def _has_cut(answer: Message, measured: context_meter.Meter | None) -> bool:
    """Whether the prompt of the newest answer began elsewhere than the one before it."""
    if measured is None or measured.turns[-1].answer != answer.pk:
        return False
    before = measured.turns[-2].cut_before_message if len(measured.turns) > 1 else None
    return answer.cut_before_message != before


@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """The page learns of the end from the answer's events."""
    services.stop(_get_answer(request, pk))
    return HttpResponse(status=204)


@require_POST
def answer_again(request: HttpRequest, pk: int) -> HttpResponse:
    found = _get_answer(request, pk)
    try:
        services.answer_again(found)
    except services.ChatError as error:
        return refused(request, error)
    return whole_thread(request, found.conversation_id)


@require_POST
def show(request: HttpRequest, pk: int) -> HttpResponse:
    """Another branch: the one through this message."""
    found = get_owned(Message, request, pk)
    services.show_branch(found)
    return whole_thread(request, found.conversation_id)


def refused(request: HttpRequest, error: services.ChatError) -> HttpResponse:
    """Says above the composer what cannot be done, and what to do."""
    said = render(request, "chat/composer/_error.html", {"sentence": str(error)}, status=422)
    said["HX-Retarget"], said["HX-Reswap"] = "#refused", "innerHTML"
    return said


def whole_thread(request: HttpRequest, pk: int, *, status: int = 200, **news: Any) -> HttpResponse:
    """The active branch; `news` (removed, restored, went_on) is what the page says beside it."""
    found = get_conversation(request, pk)
    branch = services.Branch.active(found)
    context = _thread(branch, services.window(branch))
    return render(request, "chat/thread/_thread_update.html", context | news, status=status)


def in_place_of_thread(thread: HttpResponse) -> HttpResponse:
    """The whole thread, whatever part of it the page has asked for."""
    thread["HX-Retarget"], thread["HX-Reswap"] = "#thread", "innerHTML"
    return thread


def get_conversation(request: HttpRequest, pk: int) -> Conversation:
    conversation = Conversation.of(owner(request), pk)
    if conversation is None:
        raise Http404
    return conversation


def get_preset(request: HttpRequest, chosen: str) -> Preset:
    """The preset a form names; an empty one where it names none."""
    if not chosen:
        return Preset()
    mine = Preset.objects.owned_by(owner(request)).select_related("server", "system_prompt")
    return get_object_or_404(mine, pk=chosen if chosen.isdecimal() else 0)


def get_prompt(request: HttpRequest, chosen: str) -> SystemPrompt | None:
    """The system prompt a form names; None where it names none."""
    if not chosen:
        return None
    prompts = SystemPrompt.objects.owned_by(owner(request))
    return get_object_or_404(prompts, pk=chosen if chosen.isdecimal() else 0)


def _get_answer(request: HttpRequest, pk: int) -> Message:
    return get_owned(Message.objects.answers().select_related("conversation"), request, pk)


def page_of(request: HttpRequest) -> dict[str, Any]:
    """What every page of the chat shows beside itself."""
    return shelf_of(request) | {"tags": Tag.objects.owned_by(owner(request))}


def shelf_of(request: HttpRequest) -> dict[str, Any]:
    """A part of the list of conversations, as its address says which."""
    asked = {name: request.GET.get(name, "") for name in ("tag", "archived", "from")}
    tag = int(asked["tag"]) if asked["tag"].isdecimal() else None
    start = int(asked["from"]) if asked["from"].isdecimal() else 0
    rows = library.shelf(owner(request), tag=tag, archived=bool(asked["archived"]))
    found = list(rows.only("title", "pinned", "owner")[start : start + LIST_LENGTH + 1])
    return {
        "conversations": found[:LIST_LENGTH],
        "next_start": start + LIST_LENGTH if len(found) > LIST_LENGTH else None,
        "tag": tag,
        "archived": bool(asked["archived"]),
    }


def _thread(branch: services.Branch, part: services.Window) -> dict[str, Any]:
    found = branch.conversation
    turns = context_meter.turns_of(branch)
    context: dict[str, Any] = {
        "conversation": found,
        "shown": part.shown,
        "earlier": part.earlier,
        "cut": cuts.cut_of(branch, turns),
    } | model_state.head_of(found)
    target = context.get("target")
    size = target.server.context_of(target.model) if target else None
    server = target.server if target else None
    context["prefill_drafts"] = prefill.allowed(found.owner_id, server)
    if turns:
        context["meter"] = context_meter.Meter(turns, size)
    return context
