"""The state of the model that answers, as the head of a page shows it."""

from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from apps.chat.conversations import services
from apps.chat.models import Conversation
from apps.servers import services as llm
from apps.servers.models import State

# Labels for states other than ready.
MODEL_LABELS = {
    "loading": "loading…",
    "downloading": "downloading…",
    "unloaded": "not loaded",
    "failed": "failed to start",
}
SERVER_LABELS = {
    State.LOADING: "loading…",
    State.UNREACHABLE: "offline",
    State.UNAUTHORIZED: "key rejected",
    State.UNKNOWN: "not checked",
}
POLL_LOADING_SECONDS, POLL_OTHER_SECONDS = 2, 5


@dataclass(frozen=True)
class ModelState:
    """State of a model and its server at the last check."""

    target: llm.Target

    @property
    def name(self) -> str:
        """Name of the model, or of its server until its models are known."""
        return self.target.model if self.target.server.model_ids else self.target.server.name

    @property
    def status(self) -> str:
        """State of the server unless it is ready, else of the model; "ready" if it can answer."""
        server = self.target.server
        if server.state != State.READY:
            return str(server.state)
        state = server.facts_of(self.target.model).state
        return state if state in MODEL_LABELS else "ready"

    @property
    def _waits_for_download(self) -> bool:
        server = self.target.server
        return server.state == State.LOADING and server.facts.is_downloading

    @property
    def label(self) -> str:
        """Label next to the name; "" if it is ready."""
        server = self.target.server
        if server.state == State.READY:
            return MODEL_LABELS.get(self.status, "")
        if self._waits_for_download:
            share = server.facts.downloaded
            return "downloading…" if share is None else f"downloading… {share:.0%}"
        label = SERVER_LABELS.get(State(server.state), "")
        if server.state != State.LOADING or server.state_since is None:
            return label
        return f"{label} {(timezone.now() - server.state_since).seconds} s"

    @property
    def hint(self) -> str:
        """Sentence on the effect on a question; "" if it is ready."""
        server = self.target.server
        if self._waits_for_download:
            return f"{server.facts.error} Your message is sent when it is complete."
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
    def poll_seconds(self) -> int | None:
        """Seconds until the page asks again; None if it is ready."""
        if self.status == "ready":
            return None
        return (
            POLL_LOADING_SECONDS
            if self.status in {"loading", "downloading"}
            else POLL_OTHER_SECONDS
        )


def model_context(conversation: Conversation, state_url: str = "") -> dict[str, Any]:
    """Return the template context of the model that answers, or the reason why none does.

    Args:
        state_url: URL that the page polls; by default the conversation's own.
    """
    try:
        target = services.target_of(conversation)
    except llm.NoServer as error:
        return {"no_server": str(error)}
    state_url = state_url or reverse("chat:model", args=[conversation.pk])
    return {"target": target, "state": ModelState(target), "state_url": state_url}


def fresh_model_context(conversation: Conversation, state_url: str = "") -> dict[str, Any]:
    """Return the same after checking the server, for a page that waits for a model."""
    head = model_context(conversation, state_url)
    if target := head.get("target"):
        server = async_to_sync(llm.refresh_server)(target.server)
        head["state"] = ModelState(llm.choose_target(server, target.model))
    return head
