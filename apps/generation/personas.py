"""People that the user's own model makes up, to write rows from their points of view.

After Ge et al. 2024 (arXiv 2406.20094); their own list may not be used commercially, so none of it
is here.
"""

import json

from apps.llm.client import ChatRequest
from apps.llm.services import Target, look_at
from apps.llm.slots import Lane, permit

MOST = 100
AT_ONCE = 20
LONGEST = 160  # characters
SYSTEM = "You invent people. Each is one short phrase: age, work, situation, what is on their mind."


class NothingWritten(Exception):
    """The model wrote nothing that can be used."""


async def write(target: Target, about: str, count: int, *, person: int | None = None) -> list[str]:
    """`count` different people, fewer if the model repeats itself.

    Raises:
        NothingWritten, LLMError
    """
    server = await look_at(target.server)
    target = Target(server, target.model)
    found: dict[str, str] = {}
    for turn in range(2 * (count // AT_ONCE + 1)):
        wanted = min(AT_ONCE, count - len(found))
        known = list(found.values())
        for invented in await _ask(target, about, wanted, known, turn, person):
            found.setdefault(invented.casefold(), invented)
        if len(found) >= count:
            break
    if not found:
        raise NothingWritten("The model wrote no person that can be used. Write them yourself.")
    return list(found.values())[:count]


async def _ask(
    target: Target, about: str, count: int, known: list[str], turn: int, user: int | None
) -> list[str]:
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
    request = ChatRequest(
        target.model,
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
        60 * count + 100,
        {"temperature": 1.0, "min_p": 0.05, "seed": turn},
        {
            "type": "json_schema",
            "json_schema": {"name": "people", "schema": schema, "strict": True},
        },
    )
    async with permit(
        target.server,
        lane=Lane.INTERACTIVE,
        model=target.model,
        tokens=(request.max_tokens or 0) + 60 * count,
        label="Personas",
        person=user,
        owner=user,
    ) as held:
        completion = await target.client.complete(request)
        held.used(completion.usage)
    try:
        people = json.loads(completion.text).get("people", [])
    except (ValueError, AttributeError):
        return []
    return [" ".join(str(person).split()) for person in people if str(person).strip()]
