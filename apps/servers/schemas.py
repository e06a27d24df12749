"""The API's schemas of servers."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import AfterValidator

from apps.llm.addresses import UNSENDABLE_KEY, is_valid_key, validate_address
from apps.servers.facts.basis import Basis, basis_of
from apps.servers.health import Health
from apps.servers.models import ModelFacts, Server, Use


def _sendable(key: str) -> str:
    if not is_valid_key(key.strip()):
        raise ValueError(UNSENDABLE_KEY)
    return key.strip()


Address = Annotated[str, Field(max_length=500), AfterValidator(validate_address)]
Key = Annotated[str, Field(max_length=2000), AfterValidator(_sendable)]


class ModelOut(Schema):
    id: str
    name: str = ""
    aliases: list[str] = []
    state: str
    error: str = ""
    slots: int | None = None
    context: int | None
    context_trained: int | None
    unified: bool | None = None
    pool: int | None = None
    embeddings: bool | None
    vision: bool | None = None
    reasoning: bool | None = None
    abilities: dict[str, bool] = {}
    actions: list[str] = []
    sources: dict[str, str] = {}
    bases: dict[str, Basis] = {}
    """By name of the fact, how it is known."""

    @staticmethod
    def resolve_bases(model: ModelFacts) -> dict[str, Basis]:
        return {name: basis_of(source) for name, source in model.sources.items()}


class SlotsOut(Schema):
    total: int
    source: str
    basis: Basis
    """How `total` is known."""
    busy: int
    """Slots that Workbench uses."""
    unified: bool | None
    unified_source: str
    unified_basis: Basis
    context: int | None
    context_source: str
    context_basis: Basis | None
    """null: the context is not reported."""
    pool: int | None
    cap: int | None
    cap_reason: str


class DefaultOut(Schema):
    use: str
    model: str
    fallback: int | None
    """Key of the server that stands in while this one does not answer."""
    fallback_model: str


class ServerOut(Schema):
    id: int
    name: str
    base_url: str
    kind: str
    group: str
    state: str
    since: datetime | None
    seen: datetime | None
    next_look: datetime | None
    last_token: datetime | None
    error: str
    models: list[ModelOut]
    slots: SlotsOut
    defaults: list[DefaultOut]
    advice: list[str]


GROUP = Field(
    "", max_length=100, description="Servers of one group serve the same model under any name."
)


class ServerIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    base_url: Address
    api_key: Key = ""
    parallel: int | None = Field(None, ge=1, le=1024)
    context: int | None = Field(None, ge=1, le=100_000_000)
    unified: bool | None = None
    group: str = GROUP


class ServerPatch(Schema):
    name: str | None = Field(None, min_length=1, max_length=100)
    base_url: Address | None = None
    api_key: Key | None = None
    parallel: int | None = Field(None, ge=1, le=1024)
    context: int | None = Field(None, ge=1, le=100_000_000)
    unified: bool | None = None
    group: str | None = GROUP


class DefaultIn(Schema):
    use: Use
    model: str = Field("", max_length=300)
    fallback: int | None = Field(
        None,
        description="Key of the server that stands in while this one does not answer; null: none. "
        "Without this field it stays as it is.",
    )
    fallback_model: str = Field("", max_length=300)


class ActionIn(Schema):
    model: str = Field(min_length=1, max_length=300)


class ActionOut(Schema):
    model: str
    action: Literal["load", "unload", "warm"]


class SlotOut(Schema):
    id: int
    busy: bool
    used_by: str | None
    model: str
    prompt_tokens: int | None
    cached_tokens: int | None
    decoded: int | None
    context: int | None


def _slots_out(server: Server, busy: int) -> dict[str, Any]:
    limit = server.concurrency_limit
    return {
        "total": server.slots,
        "source": server.slots_source(),
        "basis": basis_of(server.slots_source()),
        "busy": busy,
        "unified": server.unified(),
        "unified_source": server.unified_source(),
        "unified_basis": basis_of(server.unified_source()),
        "context": server.context_of(),
        "context_source": server.context_source(),
        "context_basis": basis_of(server.context_source()) if server.context_of() else None,
        "pool": server.pool(),
        "cap": limit[0] if limit else None,
        "cap_reason": limit[1] if limit else "",
    }


def server_out(server: Server, health: Health, busy: int) -> dict[str, Any]:
    """A server as `ServerOut`. Prefetch its `defaults`."""
    return {
        "id": server.pk,
        "name": server.name,
        "base_url": server.base_url,
        "kind": server.kind,
        "group": server.model_group,
        "state": health.state,
        "since": health.since,
        "seen": server.checked_at,
        "next_look": health.next_check_at,
        "last_token": health.last_token,
        "error": health.error,
        "models": [ModelOut.from_orm(model) for model in server.model_facts],
        "slots": _slots_out(server, busy),
        "defaults": [
            {
                "use": default.use,
                "model": default.model,
                "fallback": default.fallback_id,
                "fallback_model": default.fallback_model,
            }
            for default in server.defaults.all()
        ],
        "advice": server.advice,
    }
