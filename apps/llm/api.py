"""Servers over HTTP."""

from typing import Any

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from apps.core.api import ApiError, Page, not_found, owner, page
from apps.llm import services
from apps.llm.models import ADDRESS_PATTERN, Server

router = Router(tags=["servers"])


class ModelOut(Schema):
    id: str
    state: str
    context: int | None
    context_trained: int | None
    embeddings: bool | None


class SlotsOut(Schema):
    total: int
    source: str
    busy: int | None
    unified: bool | None


class ServerOut(Schema):
    id: int
    name: str
    base_url: str
    kind: str
    state: str
    models: list[ModelOut]
    slots: SlotsOut


class ServerIn(Schema):
    name: str = Field(min_length=1, max_length=100)
    base_url: str = Field(pattern=ADDRESS_PATTERN, max_length=500)
    api_key: str = ""
    parallel: int | None = Field(None, ge=1, le=1024)


class ServerPatch(Schema):
    name: str | None = Field(None, min_length=1, max_length=100)
    base_url: str | None = Field(None, pattern=ADDRESS_PATTERN, max_length=500)
    api_key: str | None = None
    parallel: int | None = Field(None, ge=1, le=1024)


class SlotOut(Schema):
    id: int
    busy: bool
    used_by: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    decoded: int | None


def _show(server: Server) -> dict[str, Any]:
    return {
        "id": server.pk,
        "name": server.name,
        "base_url": server.base_url,
        "kind": server.kind,
        "state": server.state,
        "models": server.facts.get("models", []),
        "slots": {
            "total": server.slots,
            "source": server.slots_source,
            "busy": None,
            "unified": server.facts.get("unified"),
        },
    }


def _get(pk: int) -> Server:
    server = Server.objects.filter(pk=pk).first()
    if server is None:
        raise not_found("server")
    return server


def _staff(request: HttpRequest) -> None:
    if not owner(request).is_staff:
        raise ApiError(403, "staff_only", "Only a staff user may change servers.")


def _save(server: Server) -> None:
    try:
        with transaction.atomic():
            server.save()
    except IntegrityError as error:
        raise ApiError(409, "name_taken", f"There is a server named {server.name!r}.") from error


@router.get("/servers", response=Page[ServerOut])
def list_servers(request: HttpRequest, limit: int = 100, after: str | None = None) -> Any:
    return page(Server.objects.all(), _show, limit=limit, after=after)


@router.post("/servers", response={201: ServerOut})
def add_server(request: HttpRequest, data: ServerIn) -> Any:
    _staff(request)
    server = Server(
        name=data.name,
        base_url=services.normalised_base_url(data.base_url),
        parallel=data.parallel,
    )
    server.set_key(data.api_key)
    _save(server)
    return Status(201, _show(async_to_sync(services.look_at)(server)))


@router.patch("/servers/{pk}", response=ServerOut)
def change_server(request: HttpRequest, pk: int, data: ServerPatch) -> Any:
    _staff(request)
    server = _get(pk)
    given = data.dict(exclude_unset=True)
    if given.get("base_url"):
        server.base_url = services.normalised_base_url(given["base_url"])
    if given.get("name"):
        server.name = given["name"]
    if "parallel" in given:
        server.parallel = given["parallel"]
    if given.get("api_key") is not None:
        server.set_key(given["api_key"])
    server.seen = None
    _save(server)
    return _show(async_to_sync(services.look_at)(server))


@router.delete("/servers/{pk}", response={204: None})
def remove_server(request: HttpRequest, pk: int) -> Any:
    _staff(request)
    _get(pk).delete()
    return Status(204, None)


@router.post("/servers/{pk}/probe", response=ServerOut)
def probe_server(request: HttpRequest, pk: int) -> Any:
    server = _get(pk)
    server.seen = None
    return _show(async_to_sync(services.look_at)(server))


@router.get("/servers/{pk}/slots", response=list[SlotOut])
def server_slots(request: HttpRequest, pk: int) -> Any:
    return async_to_sync(services.slots_of)(_get(pk))
