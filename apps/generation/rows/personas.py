"""Personas by the user's own model, to generate rows from their points of view.

After Ge et al. 2024 (arXiv 2406.20094). None of their list is here: its licence forbids commercial
use.
"""

import json
import re
import unicodedata

from apps.llm.client import ChatRequest
from apps.llm.permits import Lane
from apps.llm.thinking import Thinking, ThinkingSetting, describe_missing_answer, plan_thinking
from apps.servers.services import Target, hold_slot, refresh_server

MOST = 100
AT_ONCE = 20
LONGEST = 160  # characters
FEWEST_LETTERS = 4  # a person in Chinese
_BULLET = re.compile(r"^(?:[-*•–]|\(?\d{1,3}[.):])\s+")
_MARKUP = re.compile(r"[{}<>|\\`=\[\]]|https?://")
SYSTEM = "You invent people. Each is one short phrase: age, work, situation, what is on their mind."


class NoPersonas(Exception):
    """The model returned no usable persona."""


async def write(
    target: Target,
    about: str,
    count: int,
    *,
    person: int | None = None,
    setting: ThinkingSetting | None = None,
) -> list[str]:
    """Generate `count` different personas, fewer if the model repeats itself.

    Args:
        setting: of the model's thinking; None: off.

    Raises:
        NoPersonas, LLMError
    """
    server = await refresh_server(target.server)
    target = Target(server, target.model)
    thinking = Thinking(server.facts_of(target.model).thinking)
    found: dict[str, str] = {}
    for turn in range(2 * (count // AT_ONCE + 1)):
        wanted = min(AT_ONCE, count - len(found))
        known = list(found.values())
        for invented in await _ask(target, about, wanted, known, turn, person, thinking, setting):
            found.setdefault(invented.casefold(), invented)
        if len(found) >= count:
            break
    if not found:
        raise NoPersonas("The model returned no usable people. Enter them yourself.")
    return list(found.values())[:count]


async def _ask(
    target: Target,
    about: str,
    count: int,
    known: list[str],
    turn: int,
    user: int | None,
    thinking: Thinking,
    setting: ThinkingSetting | None,
) -> list[str]:
    request = _request(target.model, about, count, known, turn)
    most = request.max_tokens or 0
    async with hold_slot(
        target.server,
        lane=Lane.INTERACTIVE,
        model=target.model,
        tokens=most + plan_thinking(thinking.support, setting).extra_tokens + 60 * count,
        label="Personas",
        person=user,
        owner=user,
    ) as held:
        completion = await thinking.complete(target.client.complete, request, setting)
        held.record_usage(completion.usage)
    if nothing := describe_missing_answer(completion, most):
        raise NoPersonas(nothing)
    return _people_in(completion.text)


def _request(model: str, about: str, count: int, known: list[str], turn: int) -> ChatRequest:
    question = f"Invent {count} very different people"
    question += f" for this purpose: {about}." if about else "."
    if known:
        question += " None like these:\n" + "\n".join(known[-AT_ONCE:])
    schema = {
        "type": "object",
        "required": ["people"],
        "additionalProperties": False,
        "properties": {
            "people": {
                "type": "array",
                "minItems": 1,
                "maxItems": count,
                "items": {"type": "string", "minLength": 8, "maxLength": LONGEST},
            }
        },
    }
    return ChatRequest(
        model,
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
        60 * count + 100,
        {"temperature": 1.0, "seed": turn},
        {
            "type": "json_schema",
            "json_schema": {"name": "people", "schema": schema, "strict": True},
        },
    )


def _people_in(text: str) -> list[str]:
    try:
        people = json.loads(text).get("people")
    except (ValueError, AttributeError, RecursionError):
        return []
    if not isinstance(people, list):
        return []
    return [line for person in people if (line := clean_persona(str(person)))]


def clean_persona(line: str) -> str:
    """Return a persona in one line, without a number or bullet before it.

    Returns "" for markup, a heading, a single word, or more signs than letters.
    """
    line = " ".join(line.split())
    line = _BULLET.sub("", line).strip(" \"“”'*_").rstrip(",;")
    letters = [sign for sign in line if unicodedata.category(sign)[0] in "LM"]
    alone = len(line.split()) < 2 and line.isascii()
    if alone or line.endswith(":") or _MARKUP.search(line) or 2 * len(letters) < len(line):
        return ""
    return line[:LONGEST] if len(letters) >= FEWEST_LETTERS else ""
