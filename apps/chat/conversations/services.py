"""Conversations and questions: what pages and the API both do."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.chat.answering import runner, titles
from apps.chat.attachments import receive
from apps.chat.conversations import temporary
from apps.chat.errors import (
    EmptyMessage,
    MessageDeleted,
    MessageTooLong,
    StillAnswering,
    WrongParent,
)
from apps.chat.knowledge import search, whole
from apps.chat.models import (
    TITLE_LENGTH,
    AnswerRequest,
    Conversation,
    Message,
    Project,
    Role,
    SamplingParams,
    Status,
    SystemPrompt,
    ToolSettings,
    mark_orphans_interrupted,
    stop_calls,
)
from apps.chat.prompt.build import PromptInput, chosen_model, for_question
from apps.core import quotas
from apps.llm.thinking import ThinkingSetting
from apps.servers import services as llm
from apps.servers.models import Server

ALWAYS = Q()
MAX_CHARACTERS = 400_000  # of a question, as many as a file may have


def target_of(conversation: Conversation) -> llm.Target:
    """Return the server and model that answer in a conversation.

    A server that was never checked is checked first.

    Raises:
        NoServer: no server is set, and there is no default.
    """
    server, model = chosen_model(conversation)
    is_fresh = server.checked_at is not None and timezone.now() - server.checked_at < llm.FRESH_FOR
    if not server.model_ids and not is_fresh:
        server = async_to_sync(llm.refresh_server)(server)
    return llm.choose_target(server, model)


def open_conversation(
    *,
    owner: User,
    title: str = "",
    server: Server | None = None,
    model: str = "",
    system_prompt: SystemPrompt | None = None,
    params: SamplingParams | None = None,
    tools: ToolSettings | None = None,
    response_format: Mapping[str, Any] | None = None,
    project: Project | None = None,
    is_temporary: bool = False,
) -> Conversation:
    return Conversation.objects.create(
        owner=owner,
        title=title[:TITLE_LENGTH] or (temporary.TITLE if is_temporary else ""),
        server=server,
        model=model,
        system_prompt=system_prompt,
        params=params.to_json() if params else {},
        tools=tools.to_json() if tools else {},
        response_format=response_format or {},
        project=project,
        temporary_until=temporary.end_of(timezone.now()) if is_temporary else None,
    )


def ask(
    conversation: Conversation,
    content: str,
    *,
    parent: Message | None = None,
    request: AnswerRequest | None = None,
    files: Sequence[str] = (),
) -> tuple[Message, Message]:
    """Add a question and start its answer; return both.

    Args:
        parent: the answer it follows, by default the end of the active branch (which is a
            question if its answer was deleted).
        request: options of this answer alone.
        files: IDs of uploaded attachments.

    Raises:
        EmptyMessage, MessageTooLong, StillAnswering, WrongParent, MessageDeleted
        BadAttachment: a file that is not there, or an image for a model that supports none.
        LimitReached: too many answers of this person are being generated.
    """
    content = clean_question(content)
    parent = _parent_of_next(conversation, parent)
    question = Message(conversation=conversation, parent=parent, role=Role.USER, content=content)
    conversation.title = conversation.title or titles.first_line(content)
    changes_calls = parent is not None and parent.status == Status.INTERRUPTED
    if parent is None and conversation.project_id is not None:
        whole.freeze(conversation)
    prompt = None if files or changes_calls else _read_prompt(question, parent, request)
    # The model server processes the prompt while the turn is being saved.
    with runner.send_request(prompt) as sent, transaction.atomic():
        if parent is not None and changes_calls:  # calls that wait for approval are given up
            stop_calls(call for call in parent.tool_calls.all() if call.is_open)
        question.save(force_insert=True)
        if files:
            _attach(files, question)
        answer = _add_answer(question, request)
        _append(answer, leaf=parent)
    runner.start_answer(answer, sent)
    return question, answer


def _parent_of_next(conversation: Conversation, parent: Message | None) -> Message | None:
    if parent is not None and (
        parent.conversation_id != conversation.pk or parent.role != Role.ASSISTANT
    ):
        raise WrongParent
    parent = parent or conversation.active_leaf
    if parent is not None:
        require_finished(parent)
    return parent


def _read_prompt(
    question: Message, leaf: Message | None, request: AnswerRequest | None
) -> PromptInput | None:
    """Return the prompt of a question.

    None if no server is set, which its answer reports, or if documents are searched for it first.
    """
    conversation = question.conversation
    if conversation.project_id is not None and search.is_needed(conversation):
        return None
    try:
        return for_question(question, leaf, request)
    except llm.NoServer:
        return None


def clean_question(content: str) -> str:
    """Return the text of a question as it is stored.

    Raises:
        EmptyMessage, MessageTooLong
    """
    if not content.strip():
        raise EmptyMessage
    if len(content) > MAX_CHARACTERS:
        raise MessageTooLong(len(content), MAX_CHARACTERS)
    return content.replace("\0", "\ufffd")


def _attach(files: Sequence[str], question: Message) -> None:
    receive.attach(question.conversation.owner_id, files, question)
    try:
        target = llm.choose_target(*chosen_model(question.conversation))
    except llm.NoServer:
        return  # the answer will report it
    receive.check_vision(question, target)


def require_finished(answer: Message) -> None:
    """Raise StillAnswering while an answer is being generated."""
    mark_orphans_interrupted([answer])
    if not answer.is_finished:
        raise StillAnswering


def regenerate(answer: Message, *, thinking: ThinkingSetting | None = None) -> Message:
    """Start another answer to the same question: a sibling, in the active branch.

    Args:
        thinking: the setting of this answer alone; None: as the one before.

    Raises:
        StillAnswering, MessageDeleted, LimitReached
    """
    require_finished(answer)
    assert answer.parent is not None
    with transaction.atomic():
        request = answer.answer_request.without_other_answers()
        if thinking is not None:
            params = request.params.updated_by(SamplingParams(thinking=thinking))
            request = replace(request, params=params)
        sibling = create_answer(answer.parent, request)
    runner.start_answer(sibling)
    return sibling


def stop(answer: Message) -> Message:
    """Stop an answer on its model server and keep its text. A finished one stays as it is."""
    mark_orphans_interrupted([answer])
    if not answer.is_finished:
        async_to_sync(runner.stop)(answer.pk)
        answer.refresh_from_db()
    return answer


def answer_now(answer: Message) -> Message:
    """End the thought of an answer, so that its text follows. Without one, nothing changes."""
    mark_orphans_interrupted([answer])
    if not answer.is_finished:
        async_to_sync(runner.answer_now)(answer.pk)
    return answer


def delete(conversation: Conversation, only_if: Q = ALWAYS) -> bool:
    """Stop the answers of a conversation and delete it permanently, with its files.

    Args:
        only_if: what has to be true of it still; else it stays.
    """
    for answer in conversation.messages.answers().unfinished():
        stop(answer)
    files = receive.paths_of(conversation)
    deleted, _ = Conversation.objects.filter(only_if, pk=conversation.pk).delete()
    if deleted:
        llm.drop_conversations([conversation.pk])
        for path in files:
            path.unlink(missing_ok=True)
    return deleted > 0


def delete_expired() -> int:
    """Delete the temporary conversations whose time has passed; return their number."""
    expired = Q(temporary_until__lte=timezone.now())
    return sum(delete(found, expired) for found in Conversation.objects.filter(expired))


def show_branch(message: Message) -> None:
    """Activate the branch through a message, to its newest end."""
    children = defaultdict(list)
    tree = Message.objects.filter(conversation_id=message.conversation_id, deleted_at=None)
    for pk, parent in tree.order_by("pk").values_list("pk", "parent_id"):
        children[parent].append(pk)
    leaf = message.pk
    while children[leaf]:
        leaf = children[leaf][-1]
    Conversation.objects.filter(pk=message.conversation_id).update(active_leaf_id=leaf)


def create_answer(question: Message, request: AnswerRequest | None) -> Message:
    """Create an empty answer at the end of the active branch. The caller starts it.

    Raises:
        LimitReached: too many answers of this person are being generated.
        MessageDeleted: the question, or the message before it, was deleted meanwhile.
    """
    answer = _add_answer(question, request)
    _activate(answer)
    return answer


def _add_answer(question: Message, request: AnswerRequest | None) -> Message:
    conversation = question.conversation
    _check_limit(conversation.owner_id)
    if conversation.temporary_until is not None:
        temporary.stay(conversation)
    return Message.objects.create(
        conversation=conversation,
        parent=question,
        role=Role.ASSISTANT,
        status=Status.QUEUED,
        request=request.to_json() if request else {},
    )


def _append(answer: Message, *, leaf: Message | None) -> None:
    """Make the answer to a new question the active leaf, and save the title.

    If the branch ended at `leaf` until now, nothing before it was deleted: that would have changed
    the active leaf. Else see `_activate`.
    """
    conversation = answer.conversation
    changed = Conversation.objects.filter(
        pk=conversation.pk, active_leaf=leaf, deleted_at=None
    ).update(active_leaf=answer, updated=timezone.now(), title=conversation.title)
    if changed:
        conversation.active_leaf = answer
    else:
        _activate(answer, title=conversation.title)


def _activate(answer: Message, **changed: Any) -> None:
    """Make an answer the active leaf.

    Args:
        changed: fields of the conversation to save with it.

    Raises:
        MessageDeleted: its question, or the message before it, was deleted meanwhile.
    """
    question, conversation = answer.parent, answer.conversation
    assert question is not None
    conversation.active_leaf = answer
    conversation.save(update_fields=["active_leaf", "updated", *changed])
    # Now the row of the conversation is locked: `branches.delete` locks it as well.
    deleted = Message.objects.filter(
        Q(pk=question.pk) | Q(pk=question.parent_id or question.pk), deleted_at__isnull=False
    )
    if deleted.exists():
        raise MessageDeleted


def _check_limit(owner_id: int) -> None:
    unfinished, most = Message.objects.unfinished(), quotas.most("questions")
    if unfinished.count() < most:  # of all people: whose they are would take a join
        return
    unfinished = unfinished.filter(conversation__owner=owner_id)
    running = unfinished.count()
    if running >= most:
        # Orphans of a dead process do not count.
        running = sum(not answer.is_finished for answer in unfinished.live())
    quotas.check("questions", running)
