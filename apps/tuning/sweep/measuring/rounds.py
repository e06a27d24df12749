"""One load, measured in rounds: all its requests begin together."""

import time

from apps.llm.client import Message
from apps.llm.permits import Permit
from apps.tuning.sweep.figures import Point, Timing, summarise
from apps.tuning.sweep.measuring.slots import IdleSlots
from apps.tuning.sweep.measuring.stream import ask, build_request
from apps.tuning.sweep.plan import OVERHEAD_TOKENS, Load
from apps.tuning.sweep.prompts import cached_prompt, uncached_prompt

MOST_ROUNDS = 5
# After this no further round begins.
ENOUGH_SECONDS = 3.0


async def measure_load(
    slots: IdleSlots, load: Load, characters_per_token: float, answer_tokens: int
) -> Point:
    """Measure one load.

    Raises:
        InUse, LLMError: see `IdleSlots.run`.
    """
    characters = round(load.prompt_tokens * characters_per_token)
    tokens = load.prompt_tokens + OVERHEAD_TOKENS + answer_tokens

    async def run(most_tokens: int) -> list[Timing]:
        async def work(held: Permit) -> Timing:
            prompt = cached_prompt(characters) if load.is_cached else uncached_prompt(characters)
            message: Message = {"role": "user", "content": prompt}
            request = build_request(slots.target, [message], most_tokens, is_json=load.is_json)
            answer = await ask(slots.target, request)
            if answer.usage is not None:
                held.record_usage(answer.usage)
            return answer.timing

        return await slots.run([work] * load.width, tokens)

    if load.is_cached:
        await run(1)  # fills the cache of each slot
    rounds: list[list[Timing]] = []
    began = time.monotonic()
    while not rounds or (len(rounds) < MOST_ROUNDS and time.monotonic() - began < ENOUGH_SECONDS):
        rounds.append(await run(answer_tokens))
    return summarise(load, rounds)
