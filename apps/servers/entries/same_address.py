"""Finds the entries that name one server twice: together they would count its slots twice."""

from apps.servers.models import Server


def find_twin(base_url: str, key: str, *, changed: Server | None = None) -> Server | None:
    """Return the entry that has this address and key already.

    Args:
        changed: the entry that is to get them. Where it has them, its twin was there before.
    """
    pk = changed.pk if changed else None
    having = [one for one in Server.objects.all() if _has(one, base_url, key)]
    return None if any(one.pk == pk for one in having) else next(iter(having), None)


def _has(entry: Server, base_url: str, key: str) -> bool:
    return entry.address == Server(base_url=base_url).address and entry.endpoint.api_key == key


def entries_at(base_url: str, *, but: int | None = None) -> list[Server]:
    """Return the entries at this address, however it is spelled, except one primary key."""
    address = Server(base_url=base_url).address
    entries = Server.objects.all()
    return [one for one in entries if one.pk != but and one.address == address]


def refusal(twin: Server) -> str:
    """Return why a second entry with the address and key of `twin` is refused."""
    return (
        f"“{twin.name}” already has this address and key. "
        "Edit that server, or choose it under Default models."
    )


def warning(entry: Server) -> str:
    """Return what a second entry with the address of this one and another key leads to."""
    return (
        f"“{entry.name}” already has this address, with another key. If both lead to the same "
        "slots, these are counted twice. Remove one of the two then."
    )
