"""What a feature hands the pump: one async function that works a row."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.utils.module_loading import import_string

from apps.llm.events import Usage
from apps.llm.stream.resume import ResumableCompletion

if TYPE_CHECKING:
    from apps.llm.client import Client

T = TypeVar("T")

CHARACTERS_PER_TOKEN = 4


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Work:
    """A row to be worked. `attempt` counts from 1."""

    index: int
    attempt: int
    input: Any = None
    draft: ResumableCompletion = field(default_factory=ResumableCompletion)
    """Asks for its answers; has those that came before a person needed the row's slot."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the rows of a batch share while one pump works on them."""

    batch_id: int
    spec: dict[str, Any]
    model: str
    client: "Client"
    facts: dict[str, Any] = field(default_factory=dict)
    """What is known of the model, a `ModelFacts`; empty where nothing is known."""
    _made: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[[dict[str, Any]], T]) -> T:
        """`make(spec)`, worked out for the first row and remembered for the others."""
        if make not in self._made:
            self._made[make] = make(self.spec)
        return cast(T, self._made[make])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row.

    `code` and `reason` belong to a rejection: the kind, for counting, and the sentence. `prompt` is
    what of the prompt was this row's own. `fingerprint` (at most 32 characters) makes an accepted
    row unique: the pump rejects a second one as a duplicate. `minhash` is kept with the row for the
    feature itself, by which it knows the row again without reading it.
    """

    verdict: Verdict
    output: Any = None
    raw: str = ""
    code: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))
    prompt: str = ""
    fingerprint: str | None = None
    minhash: bytes = b""

    @property
    def is_counted(self) -> bool:
        """Whether the server said what the row cost."""
        return bool(self.usage.prompt_tokens or self.usage.completion_tokens)

    @property
    def tokens(self) -> int:
        """What it cost, read anew or written; where the server says nothing, by its characters."""
        if self.is_counted:
            usage = self.usage
            return max(0, usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens)
        return max(1, (len(self.prompt) + len(self.raw)) // CHARACTERS_PER_TOKEN)


Handler = Callable[[Work, Context], Awaitable[Outcome]]
"""May raise LLMError: the pump reads `.transient` and tries again later, or the row has failed."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An accepted row, by its key, that is rejected after all."""

    item_id: int
    code: str
    reason: str


class NotNow(Exception):
    """What is done afterwards cannot be done yet. The message says what the job waits for."""


Afterwards = Callable[[], Awaitable[list[Withdrawal] | None]]
"""Looks at rows that were accepted since it last did, and says which of them go; None where there
was none. It is called again until then, beside the rows and without a slot of their server, and a
job is done only afterwards. A new one begins with the first row. May raise NotNow."""

RowTokens = Callable[[dict[str, Any], Mapping[str, Any]], int]
"""From the spec of a batch and what is known of its model to the most tokens that one of its
requests may come to, answer included."""

_handlers: dict[str, Handler | str] = {}
_row_tokens: dict[str, RowTokens | str] = {}
_afterwards: dict[str, str] = {}


def register(
    name: str,
    handler: Handler | str,
    *,
    row_tokens: RowTokens | str | None = None,
    afterwards: str | None = None,
) -> None:
    """Called from a feature's AppConfig.ready, with the functions' dotted paths.

    Only the pump imports them: what a handler needs, such as the OpenAI SDK, takes a second that
    every other process would pay at its start.

    Args:
        row_tokens: needed where the requests in flight share one context: what cannot be known
            beforehand counts as nothing.
        afterwards: where rows are also judged beside each other. A function from a batch's key and
            spec to an `Afterwards`, or to None where the spec wants nothing of it.
    """
    _handlers[name] = handler
    if afterwards is not None:
        _afterwards[name] = afterwards
    if row_tokens is not None:
        _row_tokens[name] = row_tokens


def find(name: str) -> Handler | None:
    handler = _handlers.get(name)
    return cast(Handler, import_string(handler)) if isinstance(handler, str) else handler


def row_tokens(name: str, spec: dict[str, Any], facts: Mapping[str, Any] | None = None) -> int:
    """The most tokens a row's request may come to; 0 where its feature cannot say.

    Args:
        facts: what is known of the model, as in `Context`.
    """
    function = _row_tokens.get(name)
    if isinstance(function, str):
        function = cast(RowTokens, import_string(function))
    return function(spec, facts or {}) if function is not None else 0


def afterwards(name: str, batch_id: int, spec: dict[str, Any]) -> Afterwards | None:
    """What looks at a batch's rows once they are accepted; None where nothing does."""
    if name not in _afterwards:
        return None
    make = import_string(_afterwards[name])
    return cast(Afterwards | None, make(batch_id, spec))
