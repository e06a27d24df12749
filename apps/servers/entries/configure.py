"""Writes the model servers that the settings name into the database."""

from dataclasses import dataclass, replace
from itertools import chain, count

from django.conf import settings
from django.db import transaction

from apps.llm.addresses import canonical_address, normalised_base_url
from apps.servers.models import DefaultServer, Server, Use
from apps.servers.targets import set_default

CHAT_SERVER = "Chat server"
EMBEDDING_SERVER = "Embedding server"


@dataclass(frozen=True)
class _Entry:
    """A server of the settings, and the uses it is the default for."""

    name: str
    base_url: str
    key: str
    kv_unified: bool | None
    uses: tuple[Use, ...]


@transaction.atomic
def configure_servers() -> list[Server]:
    """Write the servers that the settings name into the database, and make them the defaults.

    A default that a person set to another server stays.
    """
    return [_configure(entry) for entry in _entries()]


def _entries() -> list[_Entry]:
    """Return one entry for each address and key.

    An entry for embeddings that is stored stays, also at the address of the other: classifiers,
    jobs and programs name it.
    """
    chat = _Entry(
        CHAT_SERVER,
        settings.LLM_BASE_URL,
        settings.LLM_API_KEY,
        settings.LLM_KV_UNIFIED,
        (Use.CHAT, Use.GENERATION),
    )
    embeddings = _Entry(
        EMBEDDING_SERVER, settings.EMBED_BASE_URL, settings.EMBED_API_KEY, None, (Use.EMBEDDINGS,)
    )
    if _is_same_server(chat, embeddings) and _stored(EMBEDDING_SERVER) is None:
        return [replace(chat, uses=chat.uses + embeddings.uses)]
    return [entry for entry in (chat, embeddings) if entry.base_url]


def _is_same_server(one: _Entry, other: _Entry) -> bool:
    if not one.base_url or not other.base_url or one.key != other.key:
        return False
    return canonical_address(one.base_url) == canonical_address(other.base_url)


def _stored(name: str) -> Server | None:
    numbered = rf"^{name}( \d+)?$"
    return Server.objects.filter(from_settings=True, name__regex=numbered).first()


def _free_name(name: str) -> str:
    """Return the name, numbered where an entry of a person has it."""
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(one for one in names if not Server.objects.filter(name=one).exists())


def _configure(entry: _Entry) -> Server:
    stored = _stored(entry.name)
    server = stored or Server(from_settings=True, name=_free_name(entry.name))
    if server.base_url != (base_url := normalised_base_url(entry.base_url)):
        server.base_url, server.kv_unified = base_url, None
    server.set_key(entry.key)
    if entry.kv_unified is not None:
        server.kv_unified = entry.kv_unified
    server.forget_facts()
    server.save()
    for use in entry.uses:
        default = DefaultServer.objects.filter(use=use).select_related("server").first()
        # Of two addresses that were one until now, the other server is still the default.
        if default is None or (stored is None and default.server.from_settings):
            set_default(server, use)
    return server
