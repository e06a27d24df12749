"""The start page of a chat: what to start with, and which chats to continue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from django.contrib.auth.models import User
from django.db.models import Case, Exists, OuterRef, Value, When

from apps.chat.composer import prompts
from apps.chat.models import CallState, Conversation, Message, Preset, ToolCall
from apps.core.first_page import Door
from apps.servers import services as llm

SHOWN = 3

# Topics that the built-in demo model knows, and one that any model can do.
DEMO_QUESTIONS = (
    "How do I connect my own server?",
    "What is the prompt cache?",
    "What is macro F1?",
    "Write a positive review of a toaster as JSON.",
)
EXAMPLES = (
    ("summarise", "Summarise a text", "Paste it, or attach a file"),
    ("review-code", "Review code", "Bugs, style or security"),
    ("rewrite", "Rewrite a text", "For another audience"),
)


@dataclass(frozen=True)
class Starter:
    """One line under “Start with”.

    Exactly one of `text` (goes into the composer) and `preset` (is applied) is set.
    """

    icon: str
    title: str
    note: str = ""
    text: str = ""
    preset: int | None = None
    sends: bool = False
    """True if the text is sent at once."""


@dataclass(frozen=True)
class Recent:
    """One chat under “Continue”."""

    chat: Conversation
    state: str
    """"running", "waiting" or ""."""


class StartPage(TypedDict):
    starters: Sequence[Starter]
    recent: Sequence[Recent]


def start_page(draft: Conversation, target: llm.Target | None) -> StartPage:
    """Return the template context of the start page."""
    is_demo = target is not None and target.is_demo
    return {"starters": starters(draft.owner, is_demo=is_demo), "recent": recent(draft.owner)}


def starters(person: User, *, is_demo: bool) -> list[Starter]:
    """Return what a person can start with: their own first, then what fits the model."""
    newest = sorted(prompts.list_prompts(person), key=lambda prompt: -prompt.pk)[:SHOWN]
    own = [
        Starter("prompt", prompt.name, _first_line(prompt.text), text=prompt.text)
        for prompt in newest
    ]
    own += [
        Starter("bookmark", preset.name, _about(preset), preset=preset.pk)
        for preset in Preset.objects.owned_by(person).order_by("-pk")[: SHOWN - len(own)]
    ]
    if own:
        return own
    if is_demo:
        return [Starter("chat", question, text=question, sends=True) for question in DEMO_QUESTIONS]
    return [
        Starter("prompt", title, note, text=prompts.EXAMPLES[name])
        for name, title, note in EXAMPLES
    ]


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:80]


def _about(preset: Preset) -> str:
    return preset.model or "Preset"


def recent(person: User) -> list[Recent]:
    """Return the chats to continue: those at work first, then the latest."""
    answers = Message.objects.unfinished().filter(conversation=OuterRef("pk"))
    waiting = ToolCall.objects.filter(
        answer__conversation=OuterRef("pk"), answer__deleted_at=None, state=CallState.WAITING
    )
    chats = Conversation.objects.owned_by(person).filter(archived=False)
    state = Case(
        When(Exists(waiting), then=Value("waiting")),
        When(Exists(answers), then=Value("running")),
        default=Value(""),
    )
    found = chats.annotate(state=state).order_by("-state", "-updated", "-pk")[:SHOWN]
    return [Recent(chat, vars(chat)["state"]) for chat in found]


FIRST_QUESTION = DEMO_QUESTIONS[1]


def _first_card(user: User) -> dict[str, object]:
    try:
        target = llm.default_target(llm.Use.CHAT)
    except llm.NoServer as error:
        return {"problem": str(error), "question": FIRST_QUESTION}
    return {"problem": "", "target": target, "question": FIRST_QUESTION}


FIRST_DOOR = Door(
    "chat/_first_door.html",
    is_used=lambda user: Conversation.objects.owned_by(user).exists(),
    context=_first_card,
    order=1,
)
