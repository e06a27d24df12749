"""What goes wrong: a server that is away, files that cannot be read, runs that fail."""

from playwright.sync_api import Page, expect

from tests.journeys.conftest import in_browser
from tests.screenshots.samples.calls import add_file, get, post, until
from tests.screenshots.samples.data import choose_upload
from tests.screenshots.samples.projects import examine

USE = {"use": "chat"}
AWAY = "http://127.0.0.1:9/v1"
BLANK = {"prompt": "Write one sentence about tea.", "params": {"max_tokens": 30}}
SUSPICIOUS = (
    "text,label\n"
    '"A cell\nof two, lines",card_arrival\n'
    "x,card_arrival\n"
    "Where is my card?,Card_Arrival\n"
    ",exchange_rate\n"
    "What is the rate?,\n"
)


def begin(page: Page) -> dict[str, object]:
    """Make what has begun and has nothing yet, on a server that does not answer."""
    laptop = post(page, "servers", {"name": "Laptop", "base_url": AWAY})["id"]
    job = {"name": "Waits for the laptop", "rows": 40, "recipe": BLANK, "server": laptop}
    return {
        "laptop": laptop,
        "empty_project": post(page, "projects", {"name": "Garden"})["id"],
        "waiting_job": post(page, "jobs", job | {"model": "qwen3-8b"})["id"],
    }


def break_things(page: Page, numbers: dict[str, object]) -> dict[str, object]:
    laptop = numbers["laptop"]
    project = post(page, "projects", {"name": "Scans"})["id"]
    add_file(page, f"projects/{project}/documents", "scan.pdf", b"%PDF-1.4 nothing follows")
    one_label = add_file(
        page, "datasets", "one-label.csv", b"text,label\nMy card,card\nThe card,card\n"
    )["id"]
    made = {"name": "On the laptop", "dataset": numbers["dataset"], "server": laptop, "model": "m"}
    failed = post(page, "classifiers", made)["id"]
    until(page, f"classifiers/{failed}", lambda one: one["status"] == "failed")
    examine(page, laptop)
    return {
        "broken_project": project,
        "one_label": one_label,
        "failed_classifier": failed,
        "bad_upload": choose_upload(page, "suspicious.csv", SUSPICIOUS.encode()),
        "failed_chat": ask_away(page, laptop),
    }


def ask_away(page: Page, laptop: object) -> str:
    """Make the server that is away the default, ask it, and return the address of the chat."""
    in_browser(page.context, "put", f"/api/v1/servers/{laptop}/defaults", USE)
    page.goto("/chat/")
    page.get_by_label("Message", exact=True).fill("Which of my notes are about the garden?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chat/*/")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(1, timeout=60_000)
    return page.url


def mend(page: Page) -> None:
    """Let the server that is there answer again."""
    own = next(one["id"] for one in get(page, "servers")["items"] if one["name"] == "Chat server")
    in_browser(page.context, "put", f"/api/v1/servers/{own}/defaults", USE)
