"""Describes in sentences what a server is doing. Pure."""

from collections import Counter
from collections.abc import Sequence

from apps.llm.permits import describe_backoff
from apps.servers.pages.server_snapshot import ServerSnapshot
from apps.servers.pages.slots.slot_view import Occupant, SlotView

STUCK_ADVICE = "Warm up a model to test the server. If that fails, restart the server"
NAMED_JOBS = 2
# Why a proxy refuses requests if it was not told otherwise.
LIMITS = {
    "Olla": "Olla allows 100 requests per minute",
    "llama-swap": "llama-swap allows 10 requests per model at a time",
}


def describe(server: ServerSnapshot) -> str:
    """Sentences such as "4 of 4 slots busy with 'Reviews v2'; chat takes priority."."""
    sentences = _not_ready(server) or _ready(server)
    return " ".join(s if s.endswith(("?", "!")) else f"{s}." for s in sentences)


def _not_ready(server: ServerSnapshot) -> list[str]:
    error = server.error.rstrip(". ")
    again = (
        []
        if server.next_check is None or server.next_check < 1
        else [f"Next check in {format_duration(server.next_check)}"]
    )
    match server.state:
        case "unknown":
            return ["Not checked yet"]
        case "loading" if server.is_downloading:
            return [error]
        case "loading":
            return [f"Waiting: {server.kind} is loading {_join(server.loading) or 'its model'}"]
        case "unreachable":
            return [error or "The server is not responding", *again]
        case "unauthorized":
            return ["The API key was rejected. Update it under Edit"]
        case "sleeping":
            return ["Sleeping. The next request wakes it"]
        case "stuck":
            return [_stuck(server.silent_seconds), STUCK_ADVICE]
    return []


def _ready(server: ServerSnapshot) -> list[str]:
    sentences = []
    if server.loading:
        sentences.append(f"Waiting: {server.kind} is loading {_join(server.loading)}")
    if limit := _limit(server):
        sentences.append(limit)
    sentences += _busy(server)
    if server.waiting:
        waiting = f"{count(server.waiting, 'request')} {_waits(server.waiting)} for a slot"
        sentences.append(waiting + _lanes(server.waiting, server.waiting_agents))
    for one in server.model_waits:
        waiting = f"{count(one.requests, 'request')} {_waits(one.requests)} for {one.model}"
        sentences.append(waiting + _lanes(one.requests, one.agents))
    if wait_reason := _wait_reason(server):
        sentences.append(wait_reason)
    return sentences or [_idle(server)]


def _lanes(waiting: int, agents: int) -> str:
    """Say how many waiting requests are people's and agents'; "" where none is an agent's."""
    if not agents:
        return ""
    people = waiting - agents
    if not people:
        return ", all of agents" if waiting > 1 else ", of an agent"
    return f": {people:,} of people, {agents:,} of agents"


def _idle(server: ServerSnapshot) -> str:
    if server.sleeping:
        return f"Idle. {_join(server.sleeping)} is sleeping. The next request wakes it"
    if server.swaps and not server.views:
        return "Idle. No model is loaded. The next request loads one"
    return "Idle"


def _wait_reason(server: ServerSnapshot) -> str:
    """The reason why rows wait though slots may be free; busy slots need no words."""
    if server.wait_reason == "tokens":
        return "Rows wait: the shared context is full"
    if server.wait_reason == "restarted":
        return "Redis was restarted. Recovering slot usage"
    if server.wait_reason.startswith("limit:"):
        return describe_backoff(server.wait_reason).rstrip(".")
    if server.wait_reason.startswith("model:"):
        other = server.wait_reason.removeprefix("model:")
        return f"Rows wait: someone is using {other}, and another model would unload it"
    return ""


def _stuck(seconds: float | None) -> str:
    silence = f" for {format_duration(seconds)}" if seconds else ""
    return f"Reports ready but has returned no tokens{silence}. It may be stuck"


def _limit(server: ServerSnapshot) -> str:
    if server.limit is None or server.limit >= server.slots:
        return ""
    until = (
        f" for {format_duration(server.limit_seconds)} more" if server.limit_seconds else " for now"
    )
    reason = server.limit_reason.rstrip(". ") or "The server rejected a request"
    if "request limit" in reason:  # what is behind the refusal says more than the refusal
        reason = LIMITS.get(server.kind, reason)
    return f"{reason}: {server.limit} of {server.slots} slots in use{until}"


def _busy(server: ServerSnapshot) -> list[str]:
    counts = Counter(view.occupant for view in server.views)
    jobs, others = counts[Occupant.JOB], counts[Occupant.OTHER]
    agents, chats = counts[Occupant.AGENT], counts[Occupant.CHAT]
    ours = jobs + agents + chats
    if not ours and not others:
        return []
    named = _names_of_jobs(server.views)
    if not ours:
        if others >= server.slots:
            return [f"{_all(others)} used by other programs. Workbench has to wait"]
        return [f"{count(others, 'request')} from other programs"]
    users = [(jobs, named), (agents, "agents"), (chats, "chat")]
    busy = [(number, user) for number, user in users if number]
    if len(busy) > 1:
        parts = ", ".join(f"{number} with {user}" for number, user in busy)
        line = f"{ours} of {server.slots} slots busy: {parts}"
    else:
        line = f"{ours} of {server.slots} slots busy with {busy[0][1]}"
    full = ours + others >= server.slots
    if full and jobs:
        line += "; chat takes priority"
    elif full:
        line += "; the next message waits for a free slot"
    elif jobs and server.people and not chats:
        line += f"; {server.people} kept free for chat"
    if others:
        return [line, f"{count(others, 'request')} from other programs"]
    return [line]


def _names_of_jobs(views: Sequence[SlotView]) -> str:
    """'Reviews v2', 'Tickets' and 2 more jobs: those with the most slots first."""
    labels = Counter(view.label or "a job" for view in views if view.occupant is Occupant.JOB)
    shown = [label for label, _ in labels.most_common(NAMED_JOBS)]
    rest = len(labels) - len(shown)
    words = [label if label in DESCRIPTIONS else f"'{label}'" for label in shown]
    if rest:
        words.append(count(rest, "more job"))
    return _join(words)


# Labels that are descriptions, not names that a person gave.
DESCRIPTIONS = frozenset({"a job", "Embeddings"})


def _join(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _all(slots: int) -> str:
    return "The slot is" if slots == 1 else f"All {slots} slots are"


def _waits(requests: int) -> str:
    return "waits" if requests == 1 else "wait"


def count(number: int, thing: str) -> str:
    """1 request, 2 requests."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def format_duration(seconds: float) -> str:
    """A duration in one unit: 40 s, 2 min, 3 h, 2 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"
