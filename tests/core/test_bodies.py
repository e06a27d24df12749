"""Requests that are too large, before anything of them is kept."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from apps.core.bodies import FORM_BYTES, LimitedBodies

LIMIT = 3 * 1024 * 1024


class Asked:
    """An application that reads the body, as Django does, and says how long it was."""

    def __init__(self) -> None:
        self.read = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            self.read += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"taken", "more_body": False})


async def ask(
    asked: Asked, pieces: Sequence[int], *, length: int | None, path: str = "/datasets/new/"
) -> tuple[int, str, int]:
    """Status, body and how many pieces were taken from the client."""
    sent: list[Any] = []
    taken = 0

    async def receive() -> Any:
        nonlocal taken
        taken += 1
        more = taken < len(pieces)
        return {"type": "http.request", "body": bytes(pieces[taken - 1]), "more_body": more}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "path": path, "headers": headers}
    await LimitedBodies(asked, LIMIT)(scope, receive, send)
    assert sent[-1]["more_body"] is False
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], body.decode(), taken


@pytest.mark.parametrize("length", [LIMIT, None])
async def test_it_works_up_to_the_limit(length: int | None) -> None:
    asked = Asked()
    assert await ask(asked, [LIMIT], length=length) == (200, "taken", 1)
    assert asked.read == LIMIT


async def test_a_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    asked = Asked()
    huge = LIMIT + FORM_BYTES + 1
    status, said, taken = await ask(asked, [1, 1, 1], length=huge)
    assert (status, asked.read) == (413, 0)
    assert "larger than 3 MB" in said
    assert taken == 3  # thrown away, so that a browser comes to read the answer
    status, said, _ = await ask(asked, [1], length=huge, path="/api/v1/datasets")
    assert status == 413
    assert json.loads(said)["code"] == "too_large"


async def test_a_body_without_a_length_is_counted() -> None:
    asked = Asked()
    status, said, _ = await ask(asked, [LIMIT, FORM_BYTES, 1, 1], length=None)
    assert (status, asked.read) == (413, LIMIT + FORM_BYTES)
    assert "larger than 3 MB" in said
