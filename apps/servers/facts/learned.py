"""What requests have taught of a server, kept with the facts about it.

A look replaces what the server says of itself; what it was seen to do stays while it is the same
server: `looking` says for how long.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from apps.runtime.async_db import in_db

UNIFIED = "seen_unified"
REFUSED = "refused"


async def keep_refused(server: int, model: str, fields: frozenset[str]) -> None:
    """Keeps which fields of a request for this model the server refuses."""

    def add(facts: dict[str, Any]) -> dict[str, Any]:
        refused = facts.get(REFUSED, {})
        names = sorted(fields.union(refused.get(model, ())))
        return {REFUSED: {**refused, model: names}}

    await in_db(change_facts, server, add)


@transaction.atomic
def change_facts(server: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Changes some facts of a server; those that others note at the same time stay.

    Args:
        change: gets the facts as they are, returns those that are new.

    Returns: all facts as they are now; none if the server has been removed.
    """
    from apps.servers.models import Server  # which asks this module for the names above

    row = Server.objects.select_for_update().filter(pk=server).first()
    if row is None:
        return {}
    facts = row.facts = {**row.facts, **change(row.facts)}
    row.save(update_fields=["facts"])
    return facts
