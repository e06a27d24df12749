"""What is going on at a server, in words. Pure: a moment goes in, sentences come out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.llm.permits import describe_backoff
from apps.servers.pages.slot_view import Box, Occupant

TRY_STUCK = "Warm up a model to test the server. If that fails, restart the server"
NAMED_JOBS = 2
# Why a proxy refuses requests if it was not told otherwise.
LIMITS = {
    "Olla": "Olla allows 100 requests per minute",
    "llama-swap": "llama-swap allows 10 requests per model at a time",
}


@dataclass(frozen=True)
class Moment:
    """All that the line in words is made of."""

    state: str = "ready"
    """A `State` of the server: ready, loading, unreachable, unauthorized, unknown, sleeping."""
    kind: str = "llama-server"
    """As people call it: "llama-swap"."""
    error: str = ""
    slots: int = 1
    boxes: Sequence[Box] = ()
    waiting: int = 0
    """Requests of ours that wait for a slot."""
    people: int = 0
    """Slots that jobs leave free because people are chatting."""
    wait_reason: str = ""
    """Why rows of jobs wait, as in `Occupancy`: slots, people, tokens, restarted, model:<id>."""
    limit: int | None = None
    """Fewer slots than there are, for now."""
    limit_reason: str = ""
    limit_seconds: float | None = None
    loading: Sequence[str] = field(default_factory=tuple)
    """Models on their way into memory."""
    sleeping: Sequence[str] = field(default_factory=tuple)
    swaps: bool = False
    """Whether it loads models as they are asked for."""
    silent_seconds: float | None = None
    """How long it has had requests and given no token."""
    next_look: float | None = None
    """Seconds until it is asked again."""


def in_words(moment: Moment) -> str:
    """What a person wants to know first: "4 of 4 slots busy with 'Reviews v2'; chat will take one
    over"."""
    sentences = _not_ready(moment) or _ready(moment)
    return " ".join(s if s.endswith(("?", "!")) else f"{s}." for s in sentences)


def _not_ready(moment: Moment) -> list[str]:
    error = moment.error.rstrip(". ")
    again = (
        []
        if moment.next_look is None or moment.next_look < 1
        else [f"Next check in {period(moment.next_look)}"]
    )
    match moment.state:
        case "unknown":
            return ["Not checked yet"]
        case "loading":
            return [f"Waiting: {moment.kind} is loading {_and(moment.loading) or 'its model'}"]
        case "unreachable":
            return [error or "The server is not responding", *again]
        case "unauthorized":
            return ["The API key was rejected. Update it under Edit"]
        case "sleeping":
            return ["Sleeping. The next request wakes it"]
        case "stuck":
            return [stuck(moment.silent_seconds), TRY_STUCK]
    return []


def _ready(moment: Moment) -> list[str]:
    sentences = []
    if moment.loading:
        sentences.append(f"Waiting: {moment.kind} is loading {_and(moment.loading)}")
    if limit := _limit(moment):
        sentences.append(limit)
    sentences += _busy(moment)
    if moment.waiting:
        sentences.append(
            f"{count(moment.waiting, 'chat request')} {_waits(moment.waiting)} for a slot"
        )
    if wait_reason := _rows_wait(moment):
        sentences.append(wait_reason)
    return sentences or [_idle(moment)]


def _idle(moment: Moment) -> str:
    if moment.sleeping:
        return f"Idle. {_and(moment.sleeping)} is sleeping. The next request wakes it"
    if moment.swaps and not moment.boxes:
        return "Idle. No model is loaded. The next request loads one"
    return "Idle"


def _rows_wait(moment: Moment) -> str:
    """Why rows wait though slots may be free; that all are busy can be seen."""
    if moment.wait_reason == "tokens":
        return "Rows wait: the shared context is full"
    if moment.wait_reason == "restarted":
        return "Redis was restarted. Recovering slot usage"
    if moment.wait_reason.startswith("limit:"):
        return describe_backoff(moment.wait_reason).rstrip(".")
    if moment.wait_reason.startswith("model:"):
        other = moment.wait_reason.removeprefix("model:")
        return f"Rows wait: someone is using {other}, and another model would unload it"
    return ""


def stuck(seconds: float | None) -> str:
    silence = f" for {period(seconds)}" if seconds else ""
    return f"Reports ready but has returned no tokens{silence}. It may be stuck"


def _limit(moment: Moment) -> str:
    if moment.limit is None or moment.limit >= moment.slots:
        return ""
    until = f" for {period(moment.limit_seconds)} more" if moment.limit_seconds else " for now"
    reason = moment.limit_reason.rstrip(". ") or "The server rejected a request"
    if "request limit" in reason:  # what is behind the refusal says more than the refusal
        reason = LIMITS.get(moment.kind, reason)
    return f"{reason}: {moment.limit} of {moment.slots} slots in use{until}"


def _busy(moment: Moment) -> list[str]:
    counts = Counter(box.occupant for box in moment.boxes)
    jobs, chats, others = counts[Occupant.JOB], counts[Occupant.CHAT], counts[Occupant.OTHER]
    ours = jobs + chats
    if not ours and not others:
        return []
    named = _names_of_jobs(moment.boxes)
    if not ours:
        if others >= moment.slots:
            return [f"{_all(others)} used by other programs. Workbench has to wait"]
        return [f"{count(others, 'request')} from other programs"]
    if jobs and chats:
        line = f"{ours} of {moment.slots} slots busy: {jobs} with {named}, {chats} with chat"
    else:
        line = f"{ours} of {moment.slots} slots busy with {named if jobs else 'chat'}"
    full = ours + others >= moment.slots
    if full and jobs:
        line += "; chat takes priority"
    elif full and chats:
        line += "; the next message waits for a free slot"
    elif jobs and moment.people and not chats:
        line += f"; {moment.people} kept free for chat"
    if others:
        return [line, f"{count(others, 'request')} from other programs"]
    return [line]


def _names_of_jobs(boxes: Sequence[Box]) -> str:
    """'Reviews v2', 'Tickets' and 2 more jobs: those with the most slots first."""
    labels = Counter(box.label or "a job" for box in boxes if box.occupant is Occupant.JOB)
    shown = [label for label, _ in labels.most_common(NAMED_JOBS)]
    rest = len(labels) - len(shown)
    words = [label if label in UNNAMED else f"'{label}'" for label in shown]
    if rest:
        words.append(count(rest, "more job"))
    return _and(words)


# Labels that are descriptions, not names that a person gave.
UNNAMED = frozenset({"a job", "Embeddings"})


def _and(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _all(slots: int) -> str:
    return "The slot is" if slots == 1 else f"All {slots} slots are"


def _comes(requests: int) -> str:
    return "comes" if requests == 1 else "come"


def _waits(requests: int) -> str:
    return "waits" if requests == 1 else "wait"


def count(number: int, thing: str) -> str:
    """1 request, 2 requests."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def period(seconds: float) -> str:
    """As a person would say it: 40 s, 2 min, 3 h, 2 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"
