"""The addresses that other programs ask, and where the model server has each. Pure."""

from dataclasses import dataclass
from enum import Enum

MODELS = "/v1/models"


class Dialect(Enum):
    """Whose API it is: errors have its shape."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Route:
    embeds: bool = False
    """Where no model is named: the default of embeddings answers, else that of chat."""
    needs_slot: bool = True
    is_native: bool = False
    """At the root of the server, not under its /v1."""
    dialect: Dialect = Dialect.OPENAI


ROUTES = {
    "/v1/chat/completions": Route(),
    "/v1/completions": Route(),
    "/v1/responses": Route(),
    "/v1/embeddings": Route(embeds=True),
    "/v1/rerank": Route(embeds=True),
    "/v1/systemone": Route(),
    "/v1/messages": Route(dialect=Dialect.ANTHROPIC),
    "/v1/messages/count_tokens": Route(needs_slot=False, dialect=Dialect.ANTHROPIC),
    "/infill": Route(is_native=True),
    "/tokenize": Route(is_native=True, needs_slot=False),
    "/detokenize": Route(is_native=True, needs_slot=False),
    "/apply-template": Route(is_native=True, needs_slot=False),
}


def upstream_url(path: str, root: str, base_url: str) -> str:
    """Return the address at the model server.

    Args:
        root: the server's, of its own routes.
        base_url: the server's, which ends in /v1.
    """
    if ROUTES[path].is_native:
        return root + path
    return base_url.rstrip("/") + path.removeprefix("/v1")
