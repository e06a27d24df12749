"""Conversations as Open WebUI exports them, for a workbench that looks lived in."""

import time
from typing import Any

DAY = 24 * 60 * 60

ANSWER = """Your loop sends **eight requests at once to a server with four slots**. Four run side \
by side and four wait, so the second half looks twice as slow although nothing got slower.

## Keep the shared part first

The server reuses everything up to the first character that differs. Put the question before the \
passage, not after:

```python
slots = asyncio.Semaphore(4)  # as many as the server has


async def score_one(prefix: str, passage: str) -> float:
    async with slots:
        return await score(prefix + passage)
```

| Order | Read again | Cached | 8 passages |
|---|---:|---:|---:|
| Passage, then question | 4,112 | 3% | 6.8 s |
| Question, then passage | 1,936 | 54% | 3.1 s |

The time of one request is then

$$t_{\\text{total}} = \\frac{n_{\\text{prompt}} - n_{\\text{cached}}}{r_{\\text{read}}} + \
\\frac{n_{\\text{answer}}}{r_{\\text{write}}}$$

1. Measure one request alone.
2. Measure four at once.
3. Compare the *sum* of their rates, not one of them."""

SHORT = "Yes. The server keeps the prompt of each slot, so the next message is read from there on."

# title, days ago, pinned, tags
CHATS: tuple[tuple[str, float, bool, tuple[str, ...]], ...] = (
    ("Why the reranker slows down", 0, False, ()),
    ("Release checklist 2.4", 3, True, ()),
    ("Refund letter to Ms Okafor", 0.02, False, ("letters",)),
    ("Sort 40 tickets by urgency", 0.05, False, ("support",)),
    ("Explain CTEs with one example", 0.1, False, ()),
    ("Bash: rename 3,000 scans", 1.1, False, ()),
    ("Compare Qwen3 and Gemma on long contexts", 1.2, False, ("models",)),
    ("Postgres upgrade plan", 1.3, False, ()),
    ("Regex for Swiss phone numbers", 4, False, ()),
    ("Travel policy, plain words", 4.2, False, ("letters",)),
    ("Table of VRAM against context", 5, False, ()),
    ("Workshop outline, half a day", 6, False, ()),
    ("Glossary EN-DE, 140 terms", 15, False, ()),
    ("Cover letter, third try", 18, False, ()),
    ("Meeting notes 4 November", 40, False, ()),
)


def chat(
    title: str, turns: list[tuple[str, str]], *, days_ago: float = 0, **more: Any
) -> dict[str, Any]:
    """Return one conversation of an export."""
    said = int(time.time() - days_ago * DAY)
    messages = [text for turn in turns for text in turn]
    nodes = {
        str(n): {
            "parentId": str(n - 1) if n else None,
            "role": ("user", "assistant")[n % 2],
            "content": text,
            "timestamp": said - 60 + n,
            **({"model": "Qwen3 30B A3B"} if n % 2 else {}),
        }
        for n, text in enumerate(messages)
    }
    history = {"messages": nodes, "currentId": str(len(messages) - 1)}
    return {
        "id": title,
        "created_at": said,
        "updated_at": said,
        **more,
        "chat": {"title": title, "history": history},
    }


def typical() -> list[dict[str, Any]]:
    """Return an export of what one person asks in six weeks."""
    first, *others = CHATS
    question = "My reranker takes twice as long for eight passages as for four. What is wrong?"
    turns = [("Does the server keep the prompt between messages?", SHORT), (question, ANSWER)]
    return [
        chat(first[0], turns, days_ago=first[1]),
        *(
            chat(title, [(title, SHORT)], days_ago=days, pinned=pinned, meta={"tags": list(tags)})
            for title, days, pinned, tags in others
        ),
    ]


def long() -> dict[str, Any]:
    """Return a conversation of 120 messages whose title does not end and has no spaces."""
    title = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz" * 3
    turns = [(f"And step {n}?", ANSWER if n % 10 == 0 else SHORT) for n in range(60)]
    return chat(title, turns, days_ago=0.2)
