"""The model that answers, and whether it can now: what the head of a page says of it."""

from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from apps.chat.conversations import services
from apps.chat.models import Conversation
from apps.servers import services as llm
from apps.servers.models import State

# Of a model that does not just answer, and of its server.
STATE_WORDS = {
    "loading": "loading…",
    "downloading": "downloading…",
    "unloaded": "not loaded",
    "failed": "failed to start",
}
SERVER_WORDS = {
    State.LOADING: "loading…",
    State.UNREACHABLE: "offline",
    State.UNAUTHORIZED: "key rejected",
    State.UNKNOWN: "not checked",
}
SOON, LATER = 2, 5


@dataclass(frozen=True)
class ModelState:
    """Of a model at its server, as it was last seen."""

    target: llm.Target

    @property
    def name(self) -> str:
        """Of the model, or of its server while nobody knows its models."""
        return self.target.model if self.target.server.model_ids else self.target.server.name

    @property
    def status(self) -> str:
        """The server's state where that is the trouble, else the model's; "ready": it answers."""
        server = self.target.server
        if server.state != State.READY:
            return str(server.state)
        state = server.facts_of(self.target.model).state
        return state if state in STATE_WORDS else "ready"

    @property
    def words(self) -> str:
        """What is said beside its name; nothing where it just answers."""
        server = self.target.server
        if server.state == State.READY:
            return STATE_WORDS.get(self.status, "")
        words = SERVER_WORDS.get(State(server.state), "")
        if server.state != State.LOADING or server.state_since is None:
            return words
        return f"{words} {(timezone.now() - server.state_since).seconds} s"

    @property
    def hint(self) -> str:
        """What that means for a question, as a sentence; empty where it just answers."""
        server = self.target.server
        match self.status:
            case "ready":
                return ""
            case "loading" | "downloading" as status:
                return f"{server} is {status} its model. Your message is sent when it is ready."
            case "unloaded":
                return f"{server} loads this model when you send your first message."
            case "failed":
                return f"{server} could not start this model. See the server’s log."
        return server.facts.error or "The server did not respond to the last check."

    @property
    def look_again(self) -> int | None:
        """Seconds after which it may be another; None where it just answers."""
        if self.status == "ready":
            return None
        return SOON if self.status in {"loading", "downloading"} else LATER


def head_of(conversation: Conversation, state_url: str = "") -> dict[str, Any]:
    """What a page needs to name the model that answers, or the reason why none does.

    Args:
        state_url: where its state is asked for again; by default the conversation's own.
    """
    try:
        target = services.target_of(conversation)
    except llm.NoServer as error:
        return {"no_server": str(error)}
    state_url = state_url or reverse("chat:model", args=[conversation.pk])
    return {"target": target, "state": ModelState(target), "state_url": state_url}


def head_now(conversation: Conversation, state_url: str = "") -> dict[str, Any]:
    """The same, for who waits for a model: its server is asked, as often as `llm` lets it be."""
    head = head_of(conversation, state_url)
    if target := head.get("target"):
        server = async_to_sync(llm.refresh_server)(target.server)
        head["state"] = ModelState(llm.choose_target(server, target.model))
    return head
