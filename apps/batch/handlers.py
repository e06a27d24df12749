"""The interface of features to the pump: one async function that works on a row."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from django.utils.module_loading import import_string

from apps.core.schemas.json_types import JsonObject, JsonValue
from apps.llm.events import Usage
from apps.llm.permits import Lane
from apps.llm.resume import ResumableCompletion
from apps.llm.thinking import NOT_REPORTED, ThinkingSupport

if TYPE_CHECKING:
    from apps.llm.client import ChatRequest, Client

T = TypeVar("T")
Spec = TypeVar("Spec")

RowValues = JsonObject
"""The fields of a row."""

CHARACTERS_PER_TOKEN = 4


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class RowInput:
    """A row to work on. `attempt` counts from 1."""

    index: int
    attempt: int
    input: JsonValue = None
    """As the feature stored it; of a job that replaces rows see `RowOrigin`."""
    draft: ResumableCompletion = field(default_factory=ResumableCompletion)
    """Sends the requests; keeps the answers from before someone else needed the row's slot."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """The stored input of a row that replaces, adds to or continues another one."""

    index: int
    """The row as the owner counts it: its quota and its seed row are taken over."""
    accepted: tuple[str, ...] = ()
    """First replies that a person accepted."""
    turn: int = 0
    """How often it was requeued."""

    @classmethod
    def read(cls, stored: JsonValue) -> "RowOrigin | None":
        """Read the input of a row; None if it is that of an original row."""
        if not isinstance(stored, dict) or "for" not in stored:
            return None
        given: dict[str, Any] = stored
        return cls(int(given["for"]), tuple(given.get("passed", ())), int(given.get("turn", 0)))

    def to_json(self) -> JsonObject:
        if not self.accepted and not self.turn:
            return {"for": self.index}
        return {"for": self.index, "passed": list(self.accepted), "turn": self.turn}


@dataclass(frozen=True, slots=True)
class JobContext(Generic[Spec]):
    """Data that the rows of a job share while one pump works on them."""

    batch_id: int
    spec: Spec
    """The stored spec, parsed once by the feature's `read_spec`."""
    model: str
    client: "Client"
    thinking: ThinkingSupport = NOT_REPORTED
    """The thinking that the model's chat template supports."""
    _cache: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    def with_spec(self, spec: Spec) -> "JobContext[Spec]":
        """Return the same for another spec, with nothing computed from the old one."""
        return replace(self, spec=spec, _cache={})

    def cached(self, make: Callable[[Spec], T]) -> T:
        """Return `make(spec)`, computed for the first row and kept for the others."""
        if make not in self._cache:
            self._cache[make] = make(self.spec)
        return cast(T, self._cache[make])


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The result of a row.

    Args:
        code: machine-readable reason of a rejection, for counts; `reason` is its sentence.
        prompt: the part of the prompt that only this row has.
        fingerprint: up to 32 characters; the pump rejects a second accepted row with the same one.
        minhash: stored with the row for near-duplicate search.
    """

    verdict: Verdict
    output: RowValues | None = None
    raw: str = ""
    code: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))
    prompt: str = ""
    fingerprint: str | None = None
    minhash: bytes = b""

    @property
    def is_counted(self) -> bool:
        """True if the server reported usage."""
        usage = self.usage
        return not usage.is_estimated and bool(usage.prompt_tokens or usage.completion_tokens)

    @property
    def reported(self) -> Usage:
        """The usage that the server reported; zeros without."""
        return self.usage if self.is_counted else Usage(0, 0, 0)

    @property
    def tokens(self) -> int:
        """Uncached prompt plus output tokens; estimated without reported usage."""
        usage = self.usage
        if self.is_counted or usage.is_estimated:
            return max(0, usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens)
        return max(1, (len(self.prompt) + len(self.raw)) // CHARACTERS_PER_TOKEN)

    @property
    def written(self) -> int:
        """Output tokens; estimated as `tokens` are."""
        return self.usage.completion_tokens or self.tokens


@dataclass(frozen=True, slots=True)
class LateRejection:
    """An accepted row, by its key, that is rejected after all."""

    item_id: int
    code: str
    reason: str


RunRow = Callable[[RowInput, JobContext[Any]], Awaitable[RowOutcome]]
"""Works on a row. May raise LLMError: by `.transient` the pump retries later or fails the row.
May raise RowPostponed."""

PostProcess = Callable[[], Awaitable[list[LateRejection] | None]]
"""Compares the rows accepted since its last call and returns those to reject; None if there were
none. The pump calls it again until then, beside the rows and without a slot of their server. A job
is done only afterwards. May raise PostProcessingBlocked."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How the Generate page lists jobs that are none of its own."""

    heading: str
    page: str
    """Name of the URL of a job's page, which takes the key of its batch."""


@dataclass(frozen=True, slots=True)
class Handler:
    """The functions of a feature, as objects or as dotted paths.

    Paths are imported by the pump alone: a handler may need the OpenAI SDK, which would cost every
    other process a second at its start.
    """

    run_row: RunRow | str
    read_spec: Callable[[JsonObject], Any] | str = dict
    """Parses the stored spec; its result is passed to the other functions."""
    row_tokens: Callable[[Any, ThinkingSupport], int] | str | None = None
    """Maps spec and thinking support to the max tokens of one request, answer included.
    Needed where requests in flight share one context; unknown parts count as 0."""
    post_process: Callable[[int, Any], PostProcess | None] | str | None = None
    """Maps batch id and spec to a `PostProcess`, or None if the spec asks for none."""
    shared_request: Callable[[Any, str, ThinkingSupport], "ChatRequest | None"] | str | None = None
    """Maps spec, model and thinking support to a request that begins as those of all rows do: its
    messages but the last are shared. None if the rows of the spec share nothing."""
    lane: Callable[[Any], Lane] | str | None = None
    """Maps the spec to the lane of the rows; None for the batch lane."""
    asks_for_slots: Callable[[Any], bool] | str | None = None
    """Maps the spec to True where rows ask for slots themselves, as they need them: the pump holds
    none for them. None: never."""
    loses_work: Callable[[JsonValue, Any], bool] | str | None = None
    """Maps a row's input and the spec to True where the row begins again if its slot is taken.
    None: its `draft` goes on where the server can."""
    listing: Listing | None = None
    """None: the jobs are listed by their feature alone."""

    def parse(self, spec: JsonObject) -> Any:
        return _imported(self.read_spec)(spec)

    def runner(self) -> RunRow:
        return cast(RunRow, _imported(self.run_row))

    def max_row_tokens(self, spec: Any, thinking: ThinkingSupport) -> int:
        """Return the max tokens of a row's request; 0 if the feature cannot tell."""
        return 0 if self.row_tokens is None else int(_imported(self.row_tokens)(spec, thinking))

    def row_lane(self, spec: Any) -> Lane:
        return Lane.BATCH if self.lane is None else cast(Lane, _imported(self.lane)(spec))

    def rows_ask_for_slots(self, spec: Any) -> bool:
        return self.asks_for_slots is not None and bool(_imported(self.asks_for_slots)(spec))

    def row_loses_work(self, row: JsonValue, spec: Any) -> bool:
        return self.loses_work is not None and bool(_imported(self.loses_work)(row, spec))

    def request_to_share(
        self, spec: Any, model: str, thinking: ThinkingSupport
    ) -> "ChatRequest | None":
        if self.shared_request is None:
            return None
        return cast("ChatRequest | None", _imported(self.shared_request)(spec, model, thinking))

    def post_processing(self, batch_id: int, spec: Any) -> PostProcess | None:
        if self.post_process is None:
            return None
        return cast(PostProcess | None, _imported(self.post_process)(batch_id, spec))


_handlers: dict[str, Handler] = {}


def register_handler(name: str, handler: Handler) -> None:
    """Register a feature's handler; called from its AppConfig.ready."""
    _handlers[name] = handler


def find_handler(name: str) -> Handler | None:
    return _handlers.get(name)


def listings() -> dict[str, Listing]:
    """Return the listings of handlers that have one, by their names."""
    return {name: found.listing for name, found in _handlers.items() if found.listing}


def _imported(function: Callable[..., Any] | str) -> Callable[..., Any]:
    if isinstance(function, str):
        return cast(Callable[..., Any], import_string(function))
    return function
