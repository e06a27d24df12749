"""Names the beginnings of a prompt, so that the file of one is found again."""

import hashlib
import json

from apps.llm.client import ChatRequest

# They stand in the prompt before the messages, or change how the template writes these.
_TEMPLATE_FIELDS = ("chat_template_kwargs", "reasoning_effort")


def prefixes_of(request: ChatRequest) -> list[str]:
    """Return the SHA-256 of the first message, of the first two, and so on; tools included."""
    hashed = hashlib.sha256()
    fields = {name: request.params.get(name) for name in _TEMPLATE_FIELDS}
    hashed.update(_json([list(request.tools), fields]))
    found = []
    for message in request.messages:
        hashed.update(_json(message))
        found.append(hashed.hexdigest())
    return found


def has_pictures(request: ChatRequest) -> bool:
    """True if a message is more than text: files keep no pictures."""
    return not all(isinstance(message["content"], str) for message in request.messages)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode() + b"\n"
