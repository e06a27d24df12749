"""Usage since it was last stored, counted in Redis: a request asks the database nothing."""

import json
import uuid
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from django.utils import timezone

from apps.core.models import ApiKey
from apps.gateway.usage.record import RequestRecord
from apps.runtime.redis import async_redis, sync_redis

COUNTED, TAKEN = "gateway:usage", "gateway:usage:taken"
# Numbers in Redis until they are stored. Beyond, a person's keys and models are counted together.
MAX_NUMBERS = 20_000
OTHER_KEYS = 0
OTHER_MODELS = "other models"
SCRIPTS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class UsageKey:
    """What is counted together."""

    day: str
    user_id: int
    key_id: int
    """OTHER_KEYS: several."""
    key_name: str
    model: str

    @property
    def others(self) -> "UsageKey":
        """The key under which usage beyond MAX_NUMBERS is counted together."""
        return UsageKey(self.day, self.user_id, OTHER_KEYS, "Other keys", OTHER_MODELS)

    def to_json(self) -> str:
        return json.dumps([self.day, self.user_id, self.key_id, self.key_name, self.model])


@dataclass(frozen=True, slots=True)
class Batch:
    """What was counted, under a name by which it is stored once."""

    name: str
    counts: dict[UsageKey, dict[str, int]]


async def count(record: RequestRecord, key: ApiKey) -> None:
    """Add a request to the usage of its key.

    Raises:
        RedisError
    """
    place = UsageKey(
        timezone.localdate().isoformat(), key.user_id, key.pk, key.name, record.model[:300]
    )
    amounts = [part for pair in record.counts().items() for part in pair]
    script = async_redis().register_script(_source("count"))
    await script(
        keys=[COUNTED], args=[place.to_json(), place.others.to_json(), MAX_NUMBERS, *amounts]
    )


def take_batch() -> Batch | None:
    """Take what was counted out of the way, or what was taken and not yet deleted. Blocks."""
    script = sync_redis().register_script(_source("take"))
    found = cast(list[bytes], script(keys=[COUNTED, TAKEN], args=[uuid.uuid4().hex]))
    if not found:
        return None
    fields = dict(zip(found[::2], found[1::2], strict=True))
    name = fields.pop(b"batch").decode()
    counts: dict[UsageKey, dict[str, int]] = defaultdict(dict)
    for field, amount in fields.items():
        counter, _, place = field.decode().partition(":")
        counts[UsageKey(*json.loads(place))][counter] = int(amount)
    return Batch(name, dict(counts))


def delete_batch() -> None:
    """Forget what was taken: it is stored. Blocks."""
    sync_redis().delete(TAKEN)


@cache
def _source(name: str) -> Any:
    return (SCRIPTS / f"{name}.lua").read_text()
