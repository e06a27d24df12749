"""The values that decide about a slot: a lane, the terms of a server, the ways to be refused."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Required, TypedDict

from django.conf import settings

from apps.core.schemas.json_types import JsonObject

# Permits of a process that was killed lapse after this.
LEASE_SECONDS = 8.0
# A waiting person whose request is not repeated within this time has left.
WAITER_SECONDS = 2.0
# Who got no slot for so long in a lane of batch or idle work comes one lane up, but never before
# people.
PATIENCE_SECONDS = 30.0
# An empty Redis grants nothing this soon after its start: holders register their permits first.
REDIS_WARMUP_SECONDS = 1
# Each of these periods gives a server that refused a request one slot back.
RECOVER_SECONDS = 15.0
# The servers' facts may be this old, so a model used more recently counts as loaded.
FACTS_AGE_SECONDS = 15.0
# A program that works with a model asks again within this time, or is taken to be done.
MODEL_PAUSE_SECONDS = 5.0
# So long programs work with a model while others wait for another one: loading one takes seconds.
MODEL_TURN_SECONDS = 30.0
# A request is passed by later ones of its key, whose prompts begin as the last one's, for so long.
GROUPED_SECONDS = 5.0


class Lane(StrEnum):
    INTERACTIVE = "interactive"
    """A person waits: chat, previews, single predictions."""
    AGENT = "agent"
    """Programs that work by themselves: after people, before batch, whose slots they get."""
    BATCH = "batch"
    """Rows of jobs: on every slot that people and agents leave, until one more is needed."""
    IDLE = "idle"
    """Idle slots only: warming the prompt cache, titles, summaries."""

    @property
    def gives_way(self) -> bool:
        """True if a request in flight is closed where a higher lane needs its slot."""
        return self in {Lane.BATCH, Lane.IDLE}


class SlotTaken(Exception):
    """A person needed the slot, so the request was closed. The request itself is fine."""


class ModelInUse(Exception):
    """The server would have to unload `model`, which is in use."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The server cannot hold all models at the same time, and {model} is in use."
        )
        self.model = model


class NoSlot(Exception):
    """No slot is idle, and work of the lane IDLE does not wait."""


class SlotRequest(TypedDict, total=False):
    """What a request says of itself when it asks for a slot: arguments of `permit`."""

    lane: Required[Lane]
    tokens: int
    """The most that prompt and answer may come to. Counts where the requests in flight share one
    context (a unified KV cache): together they must not outgrow it."""
    label: str
    """The text for the Servers page, such as the name of a job."""
    person: int | None
    """The user who waits; people who are active have slots left free for them."""
    owner: int | None
    """The user whose work it is, who may see the label and takes turns with others."""
    share: str
    """What takes turns with the others of its owner, such as a key."""
    prefix: str
    """Names the beginning of the prompt; requests of a share with the same stay together."""
    request: str
    """Names a request that asks again, under other permits, until its model may be loaded."""
    waits: bool
    """Wait for an idle slot in the lane IDLE."""
    loses_work: bool
    """It begins again where its slot is taken: the slots of requests that go on are taken first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTerms:
    """One server's slots for one model, as far as is known now."""

    server_id: int
    model: str = ""
    scope: str = ""
    """The model where each model has slots of its own, "" where all share the server's."""
    slots: int = 1
    pool: int | None = None
    """Tokens of the KV cache that all requests in flight share; None: each slot has its own."""
    swaps: bool = False
    """The server loads and unloads models on demand."""
    is_loaded: bool = True
    loaded_models: tuple[str, ...] = ()
    models_at_once: int = 1
    is_listed: bool = True
    """The server lists the model, or lists none at all."""

    def as_arguments(self) -> JsonObject:
        """The JSON that `acquire.lua` reads; times in milliseconds."""
        return {
            "slots": self.slots,
            "pool": self.pool or 0,
            "swaps": self.swaps,
            "loaded": self.is_loaded,
            "loaded_models": list(self.loaded_models) if self.swaps else [],
            "models_at_once": self.models_at_once,
            "listed": self.is_listed,
            "lease": int(LEASE_SECONDS * 1000),
            "waiter": int(WAITER_SECONDS * 1000),
            "warmup": REDIS_WARMUP_SECONDS,
            "patience": int(PATIENCE_SECONDS * 1000),
            "grouped": int(GROUPED_SECONDS * 1000),
            "recover": int(RECOVER_SECONDS * 1000),
            "active": active_ms(),
            "keep_model": int(settings.KEEP_MODEL_SECONDS * 1000),
            "model_pause": int(MODEL_PAUSE_SECONDS * 1000),
            "model_turn": int(MODEL_TURN_SECONDS * 1000),
            "facts_age": int(FACTS_AGE_SECONDS * 1000),
        }


def active_ms() -> int:
    """Milliseconds for which a person counts as active after an answer."""
    return max(1, int(settings.IDLE_AFTER_CHAT_SECONDS * 1000))
