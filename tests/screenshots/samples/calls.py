"""Requests with the login of a page: to the API, of forms, with files."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from tests.journeys.conftest import in_browser

PATIENCE = 300_000


def post(page: Page, path: str, body: dict[str, Any] | None = None) -> Any:
    return in_browser(page.context, "post", f"/api/v1/{path}", body)


def get(page: Page, path: str) -> Any:
    return in_browser(page.context, "get", f"/api/v1/{path}")


def send_form(page: Page, path: str, **fields: str) -> str:
    """Send a form and return the page that answers."""
    answer = page.request.post(path, form=dict(fields), headers=_headers(page))
    assert answer.ok, answer.text()
    return answer.text()


def add_file(page: Page, path: str, file_name: str, content: bytes, **fields: str) -> Any:
    """Send a file to the API and return its answer."""
    file = {"name": file_name, "mimeType": "application/octet-stream", "buffer": content}
    parts: dict[str, Any] = {"file": file, **fields}
    answer = page.request.post(f"/api/v1/{path}", multipart=parts, headers=_headers(page))
    assert answer.ok, answer.text()
    return answer.json()


def until(page: Page, path: str, condition: Callable[[Any], bool]) -> None:
    for _ in range(PATIENCE // 500):
        if condition(get(page, path)):
            return
        page.wait_for_timeout(500)  # between two requests for the state
    raise TimeoutError(path)


def _headers(page: Page) -> dict[str, str]:
    cookies = page.context.cookies()
    token = next(one["value"] for one in cookies if one["name"] == "workbench_csrf")
    return {"X-CSRFToken": token, "Referer": page.url, "Accept": "text/html"}
