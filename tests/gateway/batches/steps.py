"""The steps of a batch, as programs and workers take them."""

import json
from typing import Any

from apps.core.models import ApiKey
from apps.gateway.batches import lifecycle
from apps.gateway.files import store
from apps.gateway.models import FileBatch
from apps.work import services as work
from tests.environment import FOLDER

CHAT = "/v1/chat/completions"
MODEL = str(FOLDER / "tiny.gguf")


def line(custom_id: str, **values: Any) -> bytes:
    """Return the line of a request."""
    message = {"role": "user", "content": f"Say {custom_id}"}
    body = {"model": MODEL, "messages": [message], "max_tokens": 4, **values}
    found = {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}
    return json.dumps(found).encode() + b"\n"


def start(key: ApiKey, content: bytes, **values: Any) -> FileBatch:
    file = store.store_file(key.user, "in.jsonl", [content])
    given: dict[str, Any] = {"endpoint": CHAT, "window": "24h", "metadata": {}, **values}
    return lifecycle.start_batch(key, file, **given)


def check(batch: FileBatch) -> FileBatch:
    """Do what a worker does first."""
    return _run(lifecycle.CHECK, batch)


def finish(batch: FileBatch) -> FileBatch:
    """Do what the clock and a worker do."""
    lifecycle.finish_batches()
    return _run(lifecycle.FINISH, batch)


def _run(kind: str, batch: FileBatch) -> FileBatch:
    work.run_subject(kind, batch.pk)
    return FileBatch.objects.select_related("job", "output_file", "error_file").get(pk=batch.pk)
