"""Opening conversations and turns. What the pages and the API both do."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.chat.answering import runner, titles
from apps.chat.conversations.errors import ChatError as ChatError
from apps.chat.models import (
    TITLE_LENGTH,
    Conversation,
    Message,
    Role,
    Status,
    SystemPrompt,
)
from apps.chat.prompt import attachments, build
from apps.chat.tools import history
from apps.core import quotas
from apps.servers import services as llm
from apps.servers.models import Server

# A page of a long conversation begins with so many; the rest comes when it is scrolled to.
MESSAGES_AT_ONCE = 30
MAX_QUESTION = 400_000  # characters, as many as a file may have
PRESETS = {
    "Helpful assistant": "You are a helpful assistant.",
    "Short answers": "Answer in one or two short sentences.",
    "Teacher": "You are a patient teacher. Explain step by step.",
    "Programmer": "You are a careful programming assistant.",
}


class Conflict(ChatError):
    """The conversation has changed meanwhile."""

    status = 409


class StillAnswering(Conflict):
    code = "still_answering"

    def __init__(self) -> None:
        super().__init__("An answer is still being generated. Wait for it, or stop it.")


class NotAQuestion(ChatError):
    code = "empty_message"

    def __init__(self) -> None:
        super().__init__("The message is empty.")


class QuestionTooLong(ChatError):
    code = "message_too_long"

    def __init__(self, characters: int) -> None:
        super().__init__(
            f"The message has {characters:,} characters. The limit is {MAX_QUESTION:,}. Shorten it."
        )


class WrongParent(ChatError):
    code = "wrong_parent"

    def __init__(self) -> None:
        super().__init__("`parent` must be a finished answer in the same conversation.")


class Gone(Conflict):
    code = "message_removed"

    def __init__(self) -> None:
        super().__init__("This part of the chat was deleted meanwhile. Undo that, or ask anew.")


@dataclass(frozen=True)
class Shown:
    """A message on the page, with its place among its siblings."""

    message: Message
    siblings: Sequence[int]
    is_last: bool = False
    beside: Message | None = None
    """The answer it is compared with."""
    begins: bool = False
    """Whether it answers the first question: nothing before it could be in a server's cache."""

    @property
    def number(self) -> int:
        return self.siblings.index(self.message.pk) + 1

    @property
    def previous(self) -> int | None:
        return self.siblings[self.number - 2] if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.siblings[self.number] if self.number < len(self.siblings) else None


def system_prompts_of(user: User) -> list[SystemPrompt]:
    """The newest version of each; a user who has none yet gets the presets."""
    prompts = list(SystemPrompt.objects.owned_by(user).latest_versions())
    if prompts:
        return prompts
    presets = [SystemPrompt(owner=user, name=name, text=text) for name, text in PRESETS.items()]
    SystemPrompt.objects.bulk_create(presets, ignore_conflicts=True)
    return list(SystemPrompt.objects.owned_by(user).latest_versions())


def save_system_prompt(*, owner: User, name: str, text: str) -> SystemPrompt:
    """The version of that name with this text: the newest if it says the same, else a new one."""
    system_prompts_of(owner)
    while True:
        newest = SystemPrompt.objects.owned_by(owner).filter(name=name).order_by("-version").first()
        if newest is not None and newest.text == text:
            return newest
        version = newest.version + 1 if newest else 1
        try:
            with transaction.atomic():
                return SystemPrompt.objects.create(
                    owner=owner, name=name, text=text, version=version
                )
        except IntegrityError:  # somebody was faster with this number
            continue


def target_of(conversation: Conversation) -> llm.Target:
    """The server and model that answer in this conversation. A server nobody knows is looked at.

    Raises:
        NoServer: none was chosen and there is no default.
    """
    server, model = build.chosen(conversation)
    checked_at = server.checked_at
    lately = checked_at is not None and timezone.now() - checked_at < llm.FRESH_FOR
    if not server.model_ids and not lately:
        server = async_to_sync(llm.refresh_server)(server)
    return llm.choose_target(server, model)


def open_conversation(
    *,
    owner: User,
    title: str = "",
    server: Server | None = None,
    model: str = "",
    system_prompt: SystemPrompt | None = None,
    params: dict[str, Any] | None = None,
    tools: dict[str, Any] | None = None,
    response_format: dict[str, Any] | None = None,
) -> Conversation:
    return Conversation.objects.create(
        owner=owner,
        title=title[:TITLE_LENGTH],
        server=server,
        model=model,
        system_prompt=system_prompt,
        params=params or {},
        tools=tools or {},
        response_format=response_format or {},
    )


def ask(
    conversation: Conversation,
    content: str,
    *,
    parent: Message | None = None,
    request: dict[str, Any] | None = None,
    files: Sequence[str] = (),
) -> tuple[Message, Message]:
    """Adds a question and starts its answer; returns both.

    Args:
        parent: the answer it follows, by default the end of the active branch (which is a
            question where its answer was taken away).
        request: params and response_format of this answer alone.
        files: keys of attachments that go with the question.

    Raises:
        NotAQuestion, QuestionTooLong, StillAnswering, WrongParent, Gone
        BadAttachment: a file that is not there, or a picture for a model that sees none.
    """
    content = asked(content)
    with transaction.atomic():
        if parent is not None and (
            parent.conversation_id != conversation.pk or parent.role != Role.ASSISTANT
        ):
            raise WrongParent
        parent = parent or conversation.active_leaf
        if parent is not None:
            runner.settle([parent])
            if not parent.is_finished:
                raise StillAnswering
            if parent.status == Status.INTERRUPTED:  # what waited in it is left behind
                history.end([call for call in parent.tool_calls.all() if call.is_open])
        question = Message(
            conversation=conversation, parent=parent, role=Role.USER, content=content
        )
        question.save()
        if files:
            attachments.claim(conversation.owner_id, files, question)
            _check_seen(conversation, question)
        if not conversation.title:
            conversation.title = titles.first_line(content)
        answer = open_answer(question, request, title=conversation.title)
    runner.begin(answer)
    return question, answer


def asked(content: str) -> str:
    """A question's text as it is kept.

    Raises:
        NotAQuestion, QuestionTooLong
    """
    if not content.strip():
        raise NotAQuestion
    if len(content) > MAX_QUESTION:
        raise QuestionTooLong(len(content))
    return content.replace("\0", "\ufffd")


def _check_seen(conversation: Conversation, question: Message) -> None:
    try:
        target = llm.choose_target(*build.chosen(conversation))
    except llm.NoServer:
        return  # the answer will say so
    attachments.check_seen(question, target)


def answer_again(answer: Message) -> Message:
    """Another answer to the same question: a sibling, which becomes the active branch.

    Raises:
        StillAnswering
    """
    runner.settle([answer])
    if not answer.is_finished:
        raise StillAnswering
    assert answer.parent is not None
    with transaction.atomic():
        again = open_answer(answer.parent, anew(answer.request))
    runner.begin(again)
    return again


def anew(request: dict[str, Any]) -> dict[str, Any]:
    """What an answer was asked with, less what was about other answers."""
    return {k: v for k, v in request.items() if k not in {"continues", "beside"}}


def stop(answer: Message) -> Message:
    """Stops an answer at its server and keeps its text. One that has ended stays as it is."""
    runner.settle([answer])
    if not answer.is_finished:
        async_to_sync(runner.stop)(answer.pk)
        answer.refresh_from_db()
    return answer


def delete(conversation: Conversation) -> None:
    """Stops what is still being written and removes everything."""
    for answer in conversation.messages.answers().unfinished():
        stop(answer)
    conversation.delete()


def show_branch(message: Message) -> None:
    """Makes the branch through this message the active one, to its newest end."""
    children = defaultdict(list)
    tree = Message.objects.filter(conversation_id=message.conversation_id, deleted_at=None)
    for pk, parent in tree.order_by("pk").values_list("pk", "parent_id"):
        children[parent].append(pk)
    leaf = message.pk
    while children[leaf]:
        leaf = children[leaf][-1]
    Conversation.objects.filter(pk=message.conversation_id).update(active_leaf_id=leaf)


@dataclass(frozen=True)
class Branch:
    """The messages from the root to the end that is shown, without what they say."""

    conversation: Conversation
    path: Sequence[int]
    parents: Mapping[int, int | None]

    @classmethod
    def active(cls, conversation: Conversation) -> Self:
        tree = conversation.messages.filter(deleted_at=None).order_by("pk")
        parents = dict(tree.values_list("pk", "parent_id"))
        path: list[int] = []
        current = conversation.active_leaf_id
        while current is not None and current in parents:
            path.append(current)
            current = parents[current]
        return cls(conversation, path[::-1], parents)

    def shown(self, start: int = 0, end: int | None = None) -> list[Shown]:
        """A part of it as the page shows it. Answers without a living writer are settled first."""
        siblings: dict[int | None, list[int]] = defaultdict(list)
        for pk, parent in self.parents.items():
            siblings[parent].append(pk)
        part = self.path[start:end]
        found = Message.objects.prefetch_related("attachments", "tool_calls").in_bulk(part)
        runner.settle(found.values())
        leaf = self.conversation.active_leaf_id
        compared = _compared(found.values(), set(self.parents))
        return [
            Shown(
                found[pk],
                siblings[parent],
                is_last=pk == leaf,
                beside=compared.get(pk),
                begins=parent == self.path[0],
            )
            for pk, parent in ((pk, self.parents[pk]) for pk in part)
        ]


@dataclass(frozen=True)
class Window:
    """The part of a branch that a page shows."""

    shown: list[Shown]
    earlier: int
    """How many messages of the branch come before it."""


def window(branch: Branch, *, before: int | None = None, sought: int | None = None) -> Window:
    """The newest messages, or those that come before one; from the one that is sought on."""
    path = branch.path
    end = path.index(before) if before in path else len(path)
    start = max(0, end - MESSAGES_AT_ONCE)
    if sought in path:
        start = min(start, max(0, path.index(sought) - 4))
    return Window(branch.shown(start, end), start)


def active_branch(conversation: Conversation) -> list[Shown]:
    """All messages of the branch that is shown, in order.

    As many queries for a long conversation as for a short one.
    """
    return Branch.active(conversation).shown()


def _compared(messages: Iterable[Message], there: set[int]) -> dict[int, Message]:
    """The answers that some messages are compared with, by message."""
    wanted = {m.pk: m.request["beside"] for m in messages if m.request.get("beside") in there}
    others = Message.objects.in_bulk(wanted.values()) if wanted else {}
    runner.settle(others.values())
    return {pk: others[other] for pk, other in wanted.items() if other in others}


def place_of(message: Message) -> Shown:
    """One message with its place among its siblings."""
    siblings = Message.objects.filter(
        conversation_id=message.conversation_id, parent_id=message.parent_id, deleted_at=None
    )
    return Shown(
        message,
        list(siblings.order_by("pk").values_list("pk", flat=True)),
        begins=message.parent is not None and message.parent.parent_id is None,
    )


def open_answer(question: Message, request: dict[str, Any] | None, **changed: Any) -> Message:
    """An empty answer at the end of the active branch. Whoever opens it starts it.

    Args:
        changed: fields of the conversation that change with it.

    Raises:
        LimitReached: as many of this person's are being written or wait.
        Gone: the question, or what it follows, was taken away meanwhile.
    """
    _check_limit(question.conversation.owner_id)
    answer = Message(
        conversation=question.conversation,
        parent=question,
        role=Role.ASSISTANT,
        status=Status.QUEUED,
        request=request or {},
    )
    answer.save()
    conversation = question.conversation
    conversation.active_leaf = answer
    for name, value in changed.items():
        setattr(conversation, name, value)
    conversation.save(update_fields=["active_leaf", "updated", *changed])
    # Now this row is ours: who takes messages away holds it as well, see `branches.remove`.
    if Message.objects.filter(
        pk__in=[question.pk, question.parent_id], deleted_at__isnull=False
    ).exists():
        raise Gone
    return answer


def _check_limit(owner_id: int) -> None:
    unfinished = Message.objects.unfinished().filter(conversation__owner=owner_id)
    running = list(unfinished.values_list("pk", flat=True))
    if len(running) >= quotas.most("questions"):
        # Those that a process left behind when it ended are not waited for.
        found = list(Message.objects.filter(pk__in=running))
        runner.settle(found)
        running = [answer.pk for answer in found if not answer.is_finished]
    quotas.check("questions", len(running))
