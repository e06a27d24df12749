"""Asks a server how many tokens the beginning of an answer is to it."""

from dataclasses import dataclass
from typing import Any

from apps.gateway.continuing.shape import CHAT, with_beginning
from apps.gateway.program_request import ProgramRequest
from apps.llm import errors
from apps.llm.client import Client


@dataclass(frozen=True, slots=True)
class Asked:
    """A model at a server."""

    client: Client
    model: str
    continues: bool
    """The server goes on with the beginning of an answer."""


async def count_tokens(asked: Asked, request: ProgramRequest, text: str) -> int | None:
    """Return the tokens that a text adds to the prompt; None where the server cannot count.

    Raises:
        LLMError: the server failed.
    """
    longer = {**request.fields, **with_beginning(request.path, request.fields, text)}
    try:
        whole = await _tokens(asked, request.path, longer)
        prompt = await _tokens(asked, request.path, request.fields)
    except (errors.UnknownModel, errors.NotSupported, errors.BadRequest):
        return None
    return whole - prompt if whole is not None and prompt is not None else None


async def _tokens(asked: Asked, path: str, fields: Any) -> int | None:
    if path == CHAT:
        body = {
            name: fields[name] for name in ("messages", "chat_template_kwargs") if name in fields
        }
        reply = await asked.client.post(f"{CHAT}/input_tokens", {**body, "model": asked.model})
        count = reply.get("input_tokens") if isinstance(reply, dict) else None
        return count if isinstance(count, int) else None
    body = {"content": fields["prompt"], "add_special": True, "parse_special": True}
    reply = await asked.client.post("/tokenize", {**body, "model": asked.model})
    tokens = reply.get("tokens") if isinstance(reply, dict) else None
    return len(tokens) if isinstance(tokens, list) else None
