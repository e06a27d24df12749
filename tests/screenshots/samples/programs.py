"""What programs do with a key: requests and a batch. And a measured server."""

import json
import re

from playwright.sync_api import Page, expect

from tests.screenshots.samples.calls import PATIENCE, get
from tests.stack import Stack

PROGRAMS = ("nightly import", "editor")
REQUESTS = 6


def run_programs(stack: Stack, page: Page) -> str:
    """Let two programs ask, the first one also in a batch; return the number of the batch."""
    tokens = [stack.manage("create_api_key", name).strip() for name in PROGRAMS]
    server = next(one for one in get(page, "servers")["items"] if one["name"] == "Chat server")
    model = _models(page, tokens[0], str(server["name"]))
    for token in tokens:
        for number in range(REQUESTS):
            _ask(page, token, "chat/completions", data=_body(model, number))
    lines = [
        {"custom_id": f"n{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for n in range(12)
        if (body := _body(model, n))
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    file = {"name": "requests.jsonl", "mimeType": "application/jsonl", "buffer": content}
    sent = _ask(page, tokens[0], "files", multipart={"file": file, "purpose": "batch"})
    batch = {"input_file_id": sent["id"], "endpoint": "/v1/chat/completions"}
    _ask(page, tokens[0], "batches", data=batch | {"completion_window": "24h"})
    return _batch_number(page)


def measure(page: Page) -> None:
    """Measure the first server for a minute at most."""
    page.goto("/servers/1/measure/")
    page.get_by_label(re.compile("Minutes")).fill("1")
    page.get_by_role("button", name="Measure").click()
    running = page.get_by_role("region", name="Running measurement")
    expect(running).to_be_visible(timeout=PATIENCE)
    expect(running).to_be_hidden(timeout=PATIENCE)


def _batch_number(page: Page) -> str:
    link = page.get_by_role("link", name=PROGRAMS[0]).first
    for _ in range(60):
        page.goto("/generate/")
        if link.count():
            break
        page.wait_for_timeout(500)  # the worker reads its file first
    link.click()
    page.wait_for_url("**/servers/batches/*/")
    expect(page.locator("#batch")).to_contain_text("Done", timeout=PATIENCE)
    return page.url.rstrip("/").rpartition("/")[2]


def _models(page: Page, token: str, server: str) -> str:
    models = page.request.get("/v1/models", headers=_headers(token)).json()["data"]
    return str(next(one["id"] for one in models if one["owned_by"] == server))


def _body(model: str, number: int) -> dict[str, object]:
    message = {"role": "user", "content": f"Say {number}"}
    return {"model": model, "messages": [message], "max_tokens": 40, "seed": number}


def _ask(page: Page, token: str, path: str, **body: object) -> dict[str, str]:
    answer = page.request.post(f"/v1/{path}", headers=_headers(token), **body)  # type: ignore[arg-type]
    assert answer.ok, answer.text()
    return dict(answer.json())


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
