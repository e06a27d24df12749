"""Measures how many requests a server answers at once, on the requests that somebody sends anyway.

Only for servers that do not report it and whose owner has not set it. What was found is kept in the
facts of the server, from where permits take the number of slots.
"""

import time
from collections.abc import Hashable
from datetime import datetime, timedelta

from django.utils import timezone

from apps.servers.facts import capacity
from apps.servers.facts.server_facts import MeasuredWidth
from apps.servers.models import Server
from apps.servers.observations import record_width
from apps.servers.slots.width_search import WidthSearch

# An older measurement is only where the next search starts.
VALID_FOR = timedelta(days=1)


class WidthMeter:
    """The searches of one server, by model. Its requests all come from one event loop."""

    def __init__(self) -> None:
        self._searches: dict[str, WidthSearch] = {}
        self._unsaved: set[str] = set()

    def width(self, server: Server, model: str) -> int:
        """Return the requests for a model to have in flight: as measured, else its slots."""
        search = self._search(server, model)
        if search is None:
            return server.slots_of(model)
        limit = server.concurrency_limit
        return min(search.width, limit[0]) if limit else search.width

    def started(self, server: Server, model: str, request: Hashable) -> None:
        """Note a request that has a permit now."""
        if (search := self._search(server, model)) is not None:
            search.started(request, time.monotonic())

    def finished(self, server: Server, model: str, request: Hashable, work: float) -> None:
        """Count an answer; `work` is its length, in the same unit for all of a model."""
        search = self._search(server, model)
        if search is not None and search.finished(request, work, time.monotonic()):
            self._apply(server, model, search)

    def dropped(self, server: Server, model: str, request: Hashable, *, refused: bool) -> None:
        """Forget a request without an answer. `refused`: the server takes no more at a time."""
        search = self._search(server, model)
        if search is None:
            return
        now = time.monotonic()
        search.dropped(request, now)
        if refused and search.refused(now):
            self._apply(server, model, search)

    def pause(self) -> None:
        """Nothing is sent for a while: measure anew after that."""
        for search in self._searches.values():
            search.pause(time.monotonic())

    async def save(self, server: Server) -> None:
        """Record what was measured since the last call."""
        while self._unsaved:
            model = self._unsaved.pop()
            if (search := self._search(server, model)) is not None:
                await record_width(server, model, _measured(search))

    def _apply(self, server: Server, model: str, search: WidthSearch) -> None:
        # The permits of this process follow at once, those of others after `save`.
        server.facts.measured_widths[server.model_id(model)] = _measured(search)
        self._unsaved.add(model)

    def _search(self, server: Server, model: str) -> WidthSearch | None:
        if not server.measures_slots(model):
            self._searches.pop(model, None)
            return None
        search = self._searches.get(model)
        if search is None:
            search = self._searches[model] = _first_search(server, model)
        return search


def _first_search(server: Server, model: str) -> WidthSearch:
    now, known = time.monotonic(), capacity.measured_width(server, model)
    if known is None:
        return WidthSearch(now)
    age = timezone.now() - datetime.fromisoformat(known.at)
    return WidthSearch(now, known.value, is_settled=known.is_settled and age < VALID_FOR)


def _measured(search: WidthSearch) -> MeasuredWidth:
    at = timezone.now().isoformat(timespec="seconds")
    return MeasuredWidth(search.width, at, search.reason, search.is_settled)
