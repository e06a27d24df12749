"""A model server that says what a test knows beforehand, and waits where the test wants it to."""

import asyncio
import math
import random
from dataclasses import dataclass, field
from typing import Any

from tests.chat.tools.tool_server import Delta, ToolServer
from tests.waiting import until

# What breaks where text is cut into pieces and put together again: characters of two units in
# JavaScript, letters made of several, blank lines in code, Markdown that is not yet closed, and
# what a page must not take for its own markup.
PARAGRAPHS = (
    "Zażółć gęślą jaźń 👩‍👩‍👧‍👦, e\u0301tude & <b>no markup</b> &amp; **bold**, _thin_ and `code`.",
    "1. one\n2. two 🫖\n   - inside\n\n| kettle | price |\n|---|---|\n| blue | 12 |",
    "```python\ndef tea(kettle):\n\n    return kettle * 2\n```",
    "> A quotation\n> of two lines, 中文也可以。",
)
TEXT = "\n\n".join(f"## Part {number}\n\n{PARAGRAPHS[number % 4]}" for number in range(24))
CALLED = (PARAGRAPHS[0], PARAGRAPHS[3])  # before and after a call
TYPESET = (
    "# Tea\n\nGreen **or** black `tea`.\n\n- [x] water\n- leaves\n\n| kettle | price |\n|---|--:|\n"
    "| blue | 12 |\n\n```python\ntea = 1\n```\n\n$$\nt = \\frac{1}{2}\n$$\n\nso \\(t\\).\n\n"
    "```sh\nls\n```\n\n> A quotation that is long enough to be selected.\n\nThe end."
)
PACE_SECONDS = 0.001
THOUGHT = "First I look into the kettle.\n\nThen I think of 🫖."
OTHER = "\n".join(f"Another answer, line {number}: {'tea ' * 12}" for number in range(60))  # long


def pieces(text: str, seed: int) -> list[str]:
    """The text in pieces of 3 to 16 characters: words, parts of words, line ends with words."""
    chance = random.Random(seed)
    found, at = [], 0
    while at < len(text):
        size = chance.randint(3, 16)
        found.append(text[at : at + size])
        at += size
    return found


@dataclass
class Teller(ToolServer):
    """Says TEXT, or what `says` has for the question. Goes on from a text that was begun."""

    script: list[list[Delta]] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[list[Delta]]] = field(default_factory=dict)
    """Rounds, for questions whose answers call tools."""
    allowed: float = math.inf
    """So many pieces of an answer are sent, and no more until it is raised."""

    async def before(self, number: int) -> None:
        await asyncio.sleep(PACE_SECONDS)  # a model server, too, sends one piece after the other
        await until(lambda: number < self.allowed, within=600, every=PACE_SECONDS)

    @property
    def pages(self) -> dict[str, Any]:
        size = {"total_slots": 16, "default_generation_settings": {"n_ctx": 32768}}
        return {**super().pages, "/props": size, "/health": {"status": "ok"}}

    def deltas(self, asked: dict[str, Any]) -> list[Delta]:
        messages = asked["messages"]
        newest = max(n for n, message in enumerate(messages) if message["role"] == "user")
        question = str(messages[newest]["content"]).rsplit("\n", 1)[-1]
        if rounds := self.calls.get(question):
            return rounds[sum(message["role"] == "assistant" for message in messages[newest:])]
        text = self.says.get(question, TEXT)
        begun = messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""
        assert text.startswith(begun), "it is to go on from what it never said"
        thinks = not begun and asked.get("reasoning_effort") != "none"
        thought = [{"reasoning_content": part} for part in THOUGHTS] if thinks else []
        said = [{"content": part} for part in pieces(text[len(begun) :], len(begun))]
        return [*thought, *said]


THOUGHTS = pieces(THOUGHT, 1)


def beginning(allowed: int) -> str:
    """What TEXT says in the first so many pieces of an answer."""
    return "".join(pieces(TEXT, 0)[: max(0, allowed - len(THOUGHTS))])
