"""The command line of a server, where a router or llama-swap reports it."""

import re
import shlex
from typing import Any

from apps.llm.errors import LLMError
from apps.servers.models import Kind
from apps.servers.services import Target

MOST_CHARACTERS = 4_000
# A word of a shell: quoted, escaped and plain pieces; a quotation may be cut off.
WORD = r"""(?:'[^']*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$)|\\.?|[^\s'"\\])+"""
SECRET = re.compile(
    r"((?:(?<!\S)--?[\w-]*(?:api[-_]?key|token)|(?<!\S)-hft)(?:=|\s+)|\b\w*(?:API_KEY|TOKEN)=)"
    + WORD,
    re.IGNORECASE | re.DOTALL,
)
ROUTES = {Kind.ROUTER: "/v1/models", Kind.LLAMA_SWAP: "/running"}


async def read_command(target: Target) -> str:
    """Return the command line of a model's server; "": not reported."""
    path = ROUTES.get(Kind(target.server.kind))
    if path is None:
        return ""
    try:
        reply = await target.client.get(path)
    except LLMError:
        return ""
    return find_command(reply, target.model)


def find_command(reply: Any, model: str) -> str:
    """Return the command line of a model in a reply of a router or llama-swap, without keys."""
    listed = reply.get("data") or reply.get("running") if isinstance(reply, dict) else None
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or model not in {entry.get("id"), entry.get("model")}:
            continue
        status = entry.get("status")
        args = status.get("args") if isinstance(status, dict) else None
        command = shlex.join(map(str, args)) if isinstance(args, list) else entry.get("cmd")
        return SECRET.sub(r"\1••••", str(command or ""))[:MOST_CHARACTERS]
    return ""
