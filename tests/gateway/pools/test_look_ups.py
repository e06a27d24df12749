"""Keys and servers are looked up ahead of the requests that need them."""

import httpx2
import pytest
from django.db import transaction
from django.utils import timezone

from apps.core.models import ApiKey
from apps.gateway.pools import look_ups
from apps.servers.models import Server
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def known_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known ends only where it is read again."""
    monkeypatch.setattr(look_ups, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(look_ups, "SERVERS_SECONDS", 3600)
    monkeypatch.setattr("apps.core.models.api_keys.KEY_CACHE_SECONDS", 3600)


async def status(program: httpx2.AsyncClient) -> int:
    return (await program.get("/v1/none")).status_code


async def test_a_key_that_another_process_revoked_ends(
    program: httpx2.AsyncClient, server: Server
) -> None:
    assert await status(program) == 404
    await ApiKey.objects.aupdate(revoked=timezone.now())  # sends no signal

    async def is_refused() -> bool:
        return await status(program) == 401

    await until(is_refused)


async def test_the_use_of_a_key_is_recorded(program: httpx2.AsyncClient, server: Server) -> None:
    assert await status(program) == 404
    await ApiKey.objects.aupdate(last_used=None)

    async def is_recorded() -> bool:
        await status(program)
        return (await ApiKey.objects.aget()).last_used is not None

    await until(is_recorded)


async def test_a_server_that_another_process_changed_is_known(
    program: httpx2.AsyncClient, server: Server
) -> None:
    assert await status(program) == 404
    await Server.objects.aupdate(name="Renamed")

    async def is_known() -> bool:
        return [one.name for one in look_ups.known_servers() or []] == ["Renamed"]

    await until(is_known)


async def test_a_program_that_no_longer_asks_is_not_looked_up(
    program: httpx2.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(look_ups, "read_again", lambda keys, _: asked.append(keys))
    ahead = look_ups.LookAhead()
    ahead.note_use("used")

    async def has_asked() -> bool:
        return asked == [["used"]] * len(asked) != []

    await until(has_asked)
    monkeypatch.setattr(look_ups, "RECENT_SECONDS", 0.0)

    async def has_ended() -> bool:
        return ahead.is_idle

    await until(has_ended)
    await ahead.close()


def test_servers_that_are_read_before_a_change_is_committed_are_not_kept(server: Server) -> None:
    with transaction.atomic():
        server.save()
        look_ups.read_servers()  # as another thread would, which sees no change yet
    assert look_ups.known_servers() is None
