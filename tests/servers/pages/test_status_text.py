"""What is going on at a server, in words."""

import pytest

from apps.llm.permits import ModelWait
from apps.servers.pages.server_snapshot import ServerSnapshot
from apps.servers.pages.slots.slot_view import Occupant, SlotView
from apps.servers.pages.status_text import describe, format_duration

FREE = SlotView(0)
OTHER = SlotView(0, Occupant.OTHER)
CHAT = SlotView(0, Occupant.CHAT, "Chat")
AGENT = SlotView(0, Occupant.AGENT, "an agent")
REVIEWS = SlotView(0, Occupant.JOB, "Reviews v2")
TICKETS = SlotView(0, Occupant.JOB, "Tickets")
NAMES = SlotView(0, Occupant.JOB, "Names")
SOMEBODYS = SlotView(0, Occupant.JOB, "a job")


def four(*boxes: SlotView, **more: object) -> ServerSnapshot:
    """A server with four slots; those not named are free."""
    row = [*boxes, *[FREE] * (4 - len(boxes))]
    return ServerSnapshot(slots=4, views=row, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (four(), "Idle."),
        (
            four(CHAT, waiting=1, model_waits=[ModelWait("blue", 3, 2), ModelWait("red", 1, 0)]),
            "1 of 4 slots busy with chat. 1 request waits for a slot. "
            "3 requests wait for blue: 1 of people, 2 of agents. 1 request waits for red.",
        ),
        (ServerSnapshot(slots=1, views=[FREE]), "Idle."),
        (
            four(REVIEWS, REVIEWS, REVIEWS, REVIEWS),
            "4 of 4 slots busy with 'Reviews v2'; chat takes priority.",
        ),
        (
            four(REVIEWS, REVIEWS, REVIEWS, people=1),
            "3 of 4 slots busy with 'Reviews v2'; 1 kept free for chat.",
        ),
        (four(REVIEWS, REVIEWS), "2 of 4 slots busy with 'Reviews v2'."),
        (
            four(REVIEWS, TICKETS, REVIEWS, CHAT, people=1),
            "4 of 4 slots busy: 3 with 'Reviews v2' and 'Tickets', 1 with chat; "
            "chat takes priority.",
        ),
        (
            four(REVIEWS, TICKETS, REVIEWS, NAMES),
            "4 of 4 slots busy with 'Reviews v2', 'Tickets' and 1 more job; chat takes priority.",
        ),
        (four(SOMEBODYS), "1 of 4 slots busy with a job."),
        (four(CHAT), "1 of 4 slots busy with chat."),
        (
            four(CHAT, CHAT, CHAT, CHAT, waiting=1),
            "4 of 4 slots busy with chat; the next message waits for a free slot. "
            "1 request waits for a slot.",
        ),
        (
            four(CHAT, AGENT, AGENT, REVIEWS, waiting=3, waiting_agents=2),
            "4 of 4 slots busy: 1 with 'Reviews v2', 2 with agents, 1 with chat; "
            "chat takes priority. 3 requests wait for a slot: 1 of people, 2 of agents.",
        ),
        (
            four(AGENT, AGENT, AGENT, AGENT, waiting=1, waiting_agents=1),
            "4 of 4 slots busy with agents; the next message waits for a free slot. "
            "1 request waits for a slot, of an agent.",
        ),
        (four(OTHER, OTHER), "2 requests from other programs."),
        (four(OTHER), "1 request from other programs."),
        (
            four(OTHER, OTHER, OTHER, OTHER),
            "All 4 slots are used by other programs. Workbench has to wait.",
        ),
        (
            ServerSnapshot(slots=1, views=[OTHER]),
            "The slot is used by other programs. Workbench has to wait.",
        ),
        (
            four(REVIEWS, REVIEWS, OTHER),
            "2 of 4 slots busy with 'Reviews v2'. 1 request from other programs.",
        ),
        (
            ServerSnapshot(kind="llama-swap", swaps=True, loading=["qwen-14b"]),
            "Waiting: llama-swap is loading qwen-14b.",
        ),
        (
            ServerSnapshot(kind="llama-swap", swaps=True),
            "Idle. No model is loaded. The next request loads one.",
        ),
        (
            ServerSnapshot(kind="llama-swap", swaps=True, sleeping=["gemma"]),
            "Idle. gemma is sleeping. The next request wakes it.",
        ),
        (ServerSnapshot(state="sleeping"), "Sleeping. The next request wakes it."),
        (ServerSnapshot(state="loading"), "Waiting: llama-server is loading its model."),
        (
            ServerSnapshot(state="loading", is_downloading=True, error="Downloading m: 43%."),
            "Downloading m: 43%.",
        ),
        (ServerSnapshot(state="unknown"), "Not checked yet."),
        (
            ServerSnapshot(
                state="unreachable", error="It cannot be reached. Is it running?", next_check=22
            ),
            "It cannot be reached. Is it running? Next check in 22 s.",
        ),
        (ServerSnapshot(state="unreachable"), "The server is not responding."),
        (
            ServerSnapshot(
                state="unauthorized", error="The API key was rejected. Update it under Servers."
            ),
            "The API key was rejected. Update it under Edit.",
        ),
        (
            ServerSnapshot(state="stuck", silent_seconds=70),
            "Reports ready but has returned no tokens for 70 s. It may be stuck. "
            "Warm up a model to test the server. If that fails, restart the server.",
        ),
        (
            ServerSnapshot(
                kind="Olla",
                slots=8,
                views=[REVIEWS] * 3 + [FREE] * 5,
                limit=3,
                limit_reason="The server’s request limit is reached: Rate limit exceeded",
                limit_seconds=75,
            ),
            "Olla allows 100 requests per minute: 3 of 8 slots in use for 75 s more. "
            "3 of 8 slots busy with 'Reviews v2'.",
        ),
        (
            four(limit=2, limit_reason="The requests in flight outgrew the shared context."),
            "The requests in flight outgrew the shared context: 2 of 4 slots in use for now.",
        ),
        (four(limit=4, limit_reason="x"), "Idle."),
        (
            four(REVIEWS, wait_reason="tokens"),
            "1 of 4 slots busy with 'Reviews v2'. Rows wait: the shared context is full.",
        ),
        (
            four(wait_reason="model:qwen-14b"),
            "Rows wait: someone is using qwen-14b, and another model would unload it.",
        ),
        (four(wait_reason="slots"), "Idle."),
    ],
)
def test_in_words(moment: ServerSnapshot, words: str) -> None:
    assert describe(moment) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (4000, "67 min"), (7300, "2 h"), (2e5, "2 days")],
)
def test_period(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
