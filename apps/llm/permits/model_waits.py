"""The requests of programs that wait until a server may load their model."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from apps.llm.permits.keys import permit_key
from apps.llm.permits.terms import Lane
from apps.runtime.redis import async_redis


@dataclass(frozen=True, slots=True)
class ModelWait:
    """The requests that wait for one model."""

    model: str
    requests: int
    agents: int
    """Those of them that are agents'; the others are people's."""


async def read_model_waits(server_id: int) -> list[ModelWait]:
    """Return who waits for models that are not loaded, by model."""
    pipeline = async_redis().pipeline(transaction=False)
    pipeline.time()
    pipeline.zrange(permit_key(server_id, "model-waits"), 0, -1, withscores=True)
    (seconds, micros), found = await pipeline.execute()
    now = seconds * 1000 + micros // 1000
    living: list[Any] = [name.decode().split(":", 2) for name, ends in found if ends > now]
    requests = Counter(model for _, _, model in living)
    agents = Counter(model for lane, _, model in living if lane == Lane.AGENT)
    return [ModelWait(model, requests[model], agents[model]) for model in sorted(requests)]
