"""One request of another program: what the gateway has to know of it. Pure."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.gateway.errors import GatewayError
from apps.gateway.routes import ROUTES, Route
from apps.llm.permits import Lane
from apps.llm.token_bound import max_tokens_of

LANE_HEADER = "x-workbench-lane"
# The most urgent first.
LANES = {"person": Lane.INTERACTIVE, "agent": Lane.AGENT, "batch": Lane.BATCH, "idle": Lane.IDLE}
# Answers without a limit of their own are counted as this many tokens.
USUAL_TOKENS = 1024
# An image or a recording in a body: its base64 is no text.
_MEDIA = re.compile(rb'(?:;base64,|"data"\s{0,9}:\s{0,9}")[\w+/=\\-]{256,}')
# About what a large image comes to; models that read images in tiles count more.
MEDIA_TOKENS = 1500
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
_PROGRAM = re.compile(r"[\w .+-]{1,40}")
_AFFINITY_CHARACTERS = 2000
# A prompt without messages grows at its end: this much of it stays.
_PROMPT_CHARACTERS = 200

# Headers that concern one connection, or who asks us: they stay here.
_OURS = frozenset(
    {
        *("accept-encoding", "authorization", "connection", "content-length", "content-type"),
        *("cookie", "expect", "forwarded", "host", "keep-alive", "origin", "referer", "te"),
        *("trailer", "transfer-encoding", "upgrade", "via", "x-api-key", "x-real-ip"),
    }
)
_OUR_PREFIXES = ("proxy-", "sec-", "x-forwarded-", "x-workbench-")


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    path: str
    body: bytes
    fields: Mapping[str, Any]
    lane: Lane
    program: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those that go to the model server."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)

    @property
    def route(self) -> Route:
        return ROUTES[self.path]

    @property
    def model(self) -> str:
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    @property
    def is_streamed(self) -> bool:
        return self.fields.get("stream") is True

    @property
    def token_bound(self) -> int:
        """The most tokens that prompt and answer may come to, about."""
        named = (self.fields.get(name) for name in LIMIT_FIELDS)
        limit = next((n for n in named if isinstance(n, int) and n > 0), USUAL_TOKENS)
        text, media = _MEDIA.subn(b"", self.body)
        return max_tokens_of(text.decode("utf-8", "replace")) + media * MEDIA_TOKENS + limit

    @property
    def beginning(self) -> str:
        """Return what all requests of a conversation begin with: up to its first question."""
        first = self.fields.get("messages") or self.fields.get("input") or ""
        if isinstance(first, list):
            roles = [one.get("role") if isinstance(one, dict) else None for one in first]
            until = roles.index("user") + 1 if "user" in roles else 1
            return json.dumps(first[:until])[:_AFFINITY_CHARACTERS]
        return str(first or self.fields.get("prompt", ""))[:_PROMPT_CHARACTERS]

    @property
    def prefix(self) -> str:
        """Return a name of what prompts share: instructions, else their first characters."""
        messages = self.fields.get("messages")
        shared = self.fields.get("system") or self.fields.get("instructions")
        if not shared and isinstance(messages, list) and len(messages) > 1:
            shared = messages[0]
        text = json.dumps(shared)[:_AFFINITY_CHARACTERS] if shared else self.beginning
        if not text:
            return ""
        text = text if shared else text[:_PROMPT_CHARACTERS]
        return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()

    def body_for(self, model: str) -> bytes:
        """Return the body as it came; anew only where its server calls the model otherwise."""
        if not self.fields or self.model == model:
            return self.body
        return json.dumps({**self.fields, "model": model}, ensure_ascii=False).encode(
            errors="replace"
        )


def read_request(
    path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, key_lane: str = "person"
) -> ProgramRequest:
    """Read a request.

    Args:
        key_lane: the name of its key's lane; a header may ask for a lower one.

    Raises:
        GatewayError: no JSON object, or no such lane.
    """
    sent = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    program = _PROGRAM.match(sent.get("user-agent", "").partition("/")[0])
    return ProgramRequest(
        path,
        body,
        _json_object(body),
        _lane(sent.get(LANE_HEADER, key_lane), key_lane),
        program[0].strip() if program else "Program",
        {
            name: value
            for name, value in sent.items()
            if name not in _OURS and not name.startswith(_OUR_PREFIXES)
        },
    )


def _lane(name: str, key_lane: str) -> Lane:
    if name not in LANES:
        raise GatewayError(
            400,
            "unknown_lane",
            f"The header {LANE_HEADER} names no lane. It takes {', '.join(LANES)}.",
        )
    return LANES[max(name, key_lane, key=[*LANES].index)]


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except RecursionError:
        raise GatewayError(400, "too_deep", "The body has too many levels of JSON.") from None
    except ValueError as error:
        detail = f"The body cannot be read as JSON: {str(error)[:200]}."
        raise GatewayError(400, "bad_json", detail) from None
    if not isinstance(fields, dict):
        raise GatewayError(400, "bad_json", "The body is JSON, but not an object.")
    return fields
