"""The HTTP API of servers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from ninja import Router, Status

from apps.core.api import ApiError, NotFound, Page, owner, page
from apps.core.quotas import limited
from apps.llm import errors, permits
from apps.servers import schemas, services
from apps.servers.entries import same_address
from apps.servers.models import Server
from apps.servers.schemas import (
    ActionIn,
    ActionOut,
    DefaultIn,
    ServerIn,
    ServerOut,
    ServerPatch,
    SlotOut,
)
from apps.servers.slots.hold_slot import slot_terms

router = Router(tags=["servers"])

# Field of the API, field of the model.
STATED_FIELDS = {"name": "name", "parallel": "parallel", "context": "context_stated"} | {
    "unified": "kv_unified",
    "group": "model_group",
}

# The environment sets these again at every start.
ENVIRONMENT_FIELDS = {"name", "base_url", "api_key"}


def _get(pk: int) -> Server:
    server = Server.objects.prefetch_related("defaults").filter(pk=pk).first()
    if server is None:
        raise NotFound("server")
    return server


def _staff(request: HttpRequest) -> None:
    if not owner(request).is_staff:
        raise ApiError(403, "staff_only", "Only admins can change servers.")


def _from_settings(server: Server, what: str) -> ApiError:
    return ApiError(409, "from_settings", f"“{server.name}” comes from the settings. {what}")


def _save(server: Server) -> None:
    """Raise ApiError: another server has this name, or this address and key."""
    twin = same_address.find_twin(server.base_url, server.endpoint.api_key, changed=server)
    if twin is not None:
        raise ApiError(409, "address_taken", same_address.refusal(twin))
    try:
        with transaction.atomic():
            server.save()
    except IntegrityError as error:
        raise ApiError(
            409, "name_taken", f"A server named {server.name!r} already exists."
        ) from error


def _server_out(server: Server) -> dict[str, Any]:
    return _servers_out([server])[0]


def _servers_out(servers: Sequence[Server]) -> list[dict[str, Any]]:
    healths = services.read_health(servers)
    busy = permits.busy_slots([server.pk for server in servers])
    return [schemas.server_out(s, healths[s.pk], busy[s.pk]) for s in servers]


@router.get("/servers", response=Page[ServerOut])
def list_servers(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    rows = page(Server.objects.prefetch_related("defaults"), lambda s: s, limit=limit, after=after)
    return {"items": _servers_out(rows["items"]), "next": rows["next"]}


@router.get("/servers/{pk}", response=ServerOut)
def one_server(request: HttpRequest, pk: int) -> Any:
    return _server_out(_get(pk))


@router.post("/servers", response={201: ServerOut})
@limited("looks")
def add_server(request: HttpRequest, data: ServerIn) -> Any:
    _staff(request)
    server = Server(base_url=data.base_url)
    for field, column in STATED_FIELDS.items():
        setattr(server, column, getattr(data, field))
    server.set_key(data.api_key)
    _save(server)
    return Status(201, _server_out(async_to_sync(services.refresh_server)(server)))


@router.patch("/servers/{pk}", response=ServerOut)
@limited("looks")
def change_server(request: HttpRequest, pk: int, data: ServerPatch) -> Any:
    """Change a server. With another address the stored key is forgotten unless one is given."""
    _staff(request)
    server = _get(pk)
    given = data.dict(exclude_unset=True)
    changed = {name for name, value in given.items() if value is not None}
    if server.from_settings and ENVIRONMENT_FIELDS & changed:
        raise _from_settings(server, "Only its slots, context and cache can be changed here.")
    for field, column in STATED_FIELDS.items():
        if field in given and (field != "name" or given["name"]):
            setattr(server, column, given[field] if field != "group" else given[field] or "")
    if given.get("base_url"):
        server.move_to(given["base_url"])
    if given.get("api_key") is not None:
        server.set_key(given["api_key"])
    server.forget_facts()
    _save(server)
    return _server_out(async_to_sync(services.refresh_server)(server))


@router.delete("/servers/{pk}", response={204: None})
def remove_server(request: HttpRequest, pk: int) -> Any:
    _staff(request)
    server = _get(pk)
    if server.from_settings:
        raise _from_settings(server, "Remove it there.")
    server.delete()
    return Status(204, None)


@router.post("/servers/{pk}/probe", response=ServerOut)
@limited("looks")
def probe_server(request: HttpRequest, pk: int) -> Any:
    return _server_out(async_to_sync(services.refresh_server)(_get(pk), max_age=timedelta(0)))


@router.put("/servers/{pk}/defaults", response=ServerOut)
def make_default(request: HttpRequest, pk: int, data: DefaultIn) -> Any:
    """Make this server and model the default for a use: chat, embeddings or generation."""
    _staff(request)
    services.set_default(_get(pk), data.use, data.model)
    if "fallback" in data.model_fields_set:
        fallback = None if data.fallback is None else _get(data.fallback)
        async_to_sync(services.set_fallback)(data.use, fallback, data.fallback_model)
    return _server_out(_get(pk))


@router.post("/servers/{pk}/models/{action}", response={202: ActionOut})
def act_on_model(request: HttpRequest, pk: int, action: services.Action, data: ActionIn) -> Any:
    """Load, unload or warm up a model. Poll its `state` for progress."""
    _staff(request)
    try:
        services.start_action(_get(pk), data.model, action)
    except errors.UnknownModel as error:
        raise ApiError(404, error.code, str(error)) from error
    except errors.NotSupported as error:
        raise ApiError(409, error.code, str(error)) from error
    return Status(202, {"model": data.model, "action": action})


@router.get("/servers/{pk}/slots", response=list[SlotOut])
@limited("looks")
def server_slots(request: HttpRequest, pk: int) -> Any:
    user = owner(request)
    return async_to_sync(slots_with_users)(_get(pk), user.pk, user.is_staff)


async def slots_with_users(server: Server, user_id: int, is_staff: bool) -> list[SlotOut]:
    """Each slot with its user. Job names are shown only to their owner and to admins."""
    server = await services.refresh_server(server)
    slots = await services.read_slots(server)
    occupancy = await permits.read_occupancy(slot_terms(server))
    labels = [
        entry.label if is_staff or entry.owner == user_id else entry.lane
        for entry in occupancy.held
    ]
    # llama-server does not report whose request is in which slot. Ours fill the busy ones in the
    # order in which they came; the rest comes from other programs.
    return [
        SlotOut(
            id=slot.id,
            busy=slot.busy,
            used_by=(labels.pop(0) if labels else "another program") if slot.busy else None,
            model=slot.model,
            prompt_tokens=slot.prompt_tokens,
            cached_tokens=slot.cached_tokens,
            decoded=slot.decoded,
            context=slot.context,
        )
        for slot in slots
    ]
