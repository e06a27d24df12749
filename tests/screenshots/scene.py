"""One picture: an address, what is done there first, and who looks."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

Act = Callable[[Page], None]
SETTLED_MS = 700  # charts and what is fetched after the page

SEND = """(values) => {
  const names = Object.keys(values);
  const has = (form) => names.every((name) => form.elements.namedItem(name));
  const form = [...document.forms].find(has);
  form.noValidate = true;
  for (const [name, value] of Object.entries(values)) form.elements.namedItem(name).value = value;
  form.requestSubmit();
}"""


@dataclass(frozen=True)
class Scene:
    name: str
    """The page, then its state unless that is typical."""
    address: str
    """Names in braces are the numbers of what was made."""
    act: Act | None = None
    anonymous: bool = False


def settle(page: Page) -> None:
    """Wait until charts and late parts are there."""
    page.wait_for_timeout(SETTLED_MS)  # no state says that a picture is whole


def send(**values: str) -> Act:
    """Fill the form that has these fields and send it, whatever the browser would say to it."""

    def act(page: Page) -> None:
        page.evaluate(SEND, values)
        settle(page)
        page.wait_for_load_state("networkidle")

    return act


def write(text: str) -> Act:
    """Write a message in the composer, and do not send it."""

    def act(page: Page) -> None:
        page.get_by_label("Message", exact=True).fill(text)

    return act


def ask(text: str) -> Act:
    """Send a message from the page of a new chat, and wait for its answer."""

    def act(page: Page) -> None:
        page.get_by_label("Message", exact=True).fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url("**/chat/*/")
        page.locator("article.answer:not(.answer-live)").first.wait_for()
        settle(page)

    return act


def upload(selector: str, name: str, content: bytes, button: str = "") -> Act:
    """Choose a file, and press a button if the page does not send it at once."""

    def act(page: Page) -> None:
        file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
        page.locator(selector).set_input_files(file)  # type: ignore[arg-type]
        if button:
            page.get_by_role("button", name=button).click()
        settle(page)
        page.wait_for_load_state("networkidle")

    return act
