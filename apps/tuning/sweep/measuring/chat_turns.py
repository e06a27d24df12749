"""A chat of four turns, with the prompt cache and without, as people publish such tables."""

import statistics
from collections.abc import Sequence

from apps.llm.client import Message
from apps.llm.permits import Permit
from apps.tuning.sweep.measuring.slots import IdleSlots
from apps.tuning.sweep.measuring.stream import Answer, ask, build_request
from apps.tuning.sweep.plan import CHAT_TURNS, OVERHEAD_TOKENS
from apps.tuning.sweep.prompts import fresh, text
from apps.tuning.sweep.results import ChatTurns, Turn

ROUNDS = 3
QUESTION_CHARACTERS = 120
# A chat of this share of a slot leaves room for its answers.
SHARE_OF_SLOT = 0.5


async def measure_chat(
    slots: IdleSlots, system_characters: int, answer_tokens: int, tokens: int
) -> ChatTurns:
    """Measure the turns of a chat, as medians of the rounds.

    Without the cache, each prompt begins with another text, which works at every server.

    Args:
        tokens: the most that one request may come to.

    Raises:
        InUse, LLMError: see `IdleSlots.run`.
    """

    async def work(held: Permit) -> ChatTurns:
        found: dict[bool, list[list[Answer]]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for is_cached in (False, True):
                found[is_cached].append(
                    await _talk(slots, system_characters, answer_tokens, is_cached)
                )
                if usage := found[is_cached][-1][-1].usage:
                    held.record_usage(usage)
        prompt = found[True][-1][-1].timing.prompt_tokens
        return ChatTurns(prompt, _medians(found[False]), _medians(found[True]))

    return (await slots.run([work], tokens))[0]


async def _talk(
    slots: IdleSlots, characters: int, answer_tokens: int, is_cached: bool
) -> list[Answer]:
    begins, answers = fresh(), []
    messages: list[Message] = []
    for turn in range(CHAT_TURNS):
        messages.append({"role": "user", "content": text(QUESTION_CHARACTERS, seed=turn + 1)})
        system = (begins if is_cached else fresh()) + text(characters)
        sent: list[Message] = [{"role": "system", "content": system}, *messages]
        answer = await ask(slots.target, build_request(slots.target, sent, answer_tokens))
        answers.append(answer)
        messages.append({"role": "assistant", "content": answer.text})
    return answers


def _medians(rounds: Sequence[Sequence[Answer]]) -> list[Turn]:
    return [
        Turn(
            statistics.median(answer.timing.first_token for answer in answers),
            statistics.median(answer.timing.ended - answer.timing.began for answer in answers),
        )
        for answers in zip(*rounds, strict=True)
    ]


def chat_tokens(system_tokens: int, question_tokens: int, answer_tokens: int) -> int:
    """The tokens of the last request, with its answer."""
    return system_tokens + OVERHEAD_TOKENS + CHAT_TURNS * (question_tokens + answer_tokens)
