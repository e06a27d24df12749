"""Whose word for the address of a client is taken."""

from typing import Any

import pytest
from django.conf import settings as project

from apps.core.http.proxies import behind


@pytest.mark.parametrize(
    ("proxies", "peer", "seen"),
    [
        ([], "127.0.0.1", "127.0.0.1"),
        (["10.0.0.0/8"], "127.0.0.1", "127.0.0.1"),
        (["127.0.0.1"], "127.0.0.1", "5.6.7.8"),
        (["10.0.0.0/8"], "10.1.2.3", "5.6.7.8"),
    ],
)
async def test_only_proxies_that_are_named(proxies: list[str], peer: str, seen: str) -> None:
    clients: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        clients.append(scope["client"][0])

    headers = [(b"x-forwarded-for", b"1.2.3.4, 5.6.7.8")]
    scope = {"type": "http", "client": (peer, 1), "headers": headers}
    await behind(proxies, application)(scope, None, None)
    assert clients == [seen]


def test_nobody_is_believed_by_default() -> None:
    assert project.PROXIES == []
