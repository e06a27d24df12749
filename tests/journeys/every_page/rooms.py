"""Something in every room, for tests that open every page."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import openai  # noqa: TID251 - a program that asks us
from playwright.sync_api import Page, expect

from tests.gateway.batches.sdk_batch import start
from tests.journeys.conftest import arrive, in_browser
from tests.stack import ROOT, Stack
from tests.waiting import wait_in_page

QUESTIONS = ROOT / "bench" / "data" / "banking77_train.csv"
LABELS = ("card_arrival", "lost_or_stolen_card", "exchange_rate")
PATIENCE = 90_000
Rooms = dict[tuple[str, str], str]
"""By room and the name in a pattern, what to put there."""

TEXT = """So $x^2$:

```python
x = 1  # tea
```

| a | b |
|---|---|
| 1 | [c](https://x.org) |

> quoted"""


def messages(count: int) -> dict[str, Any]:
    return {
        f"{n}": {
            "parentId": f"{n - 1}" if n else None,
            "role": ("user", "assistant")[n % 2],
            "content": f"Number {n}. {TEXT if n % 2 else 'And then?'}",
        }
        for n in range(count)
    }


def import_chat(page: Page, tmp_path: Path, title: str, count: int) -> str:
    """The address of a conversation of so many messages."""
    file = tmp_path / "chats.json"
    chat = {"title": title, "history": {"messages": messages(count), "currentId": f"{count - 1}"}}
    file.write_text(json.dumps([{"id": title, "chat": chat}]))
    page.goto("/chat/import/")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("link", name=title, exact=True).click()
    arrive(page, r"/chat/\d+/")
    return page.url


def write_questions(path: Path) -> None:
    kept = dict.fromkeys(LABELS, 0)
    with QUESTIONS.open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label"])
        writer.writerow(["", "card_arrival"])
        for row in csv.DictReader(source):
            if kept.get(row["label"], 20) < 20:
                kept[row["label"]] += 1
                writer.writerow([row["text"], row["label"]])


def number(page: Page) -> str:
    found = re.search(r"/(\d+)/", page.url)
    assert found is not None
    return found[1]


def batch_of_a_program(stack: Stack, page: Page, folder: Path) -> str:
    token = stack.manage("create_api_key", "nightly batch").strip()
    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key=token) as sdk:
        start(sdk, folder, 3)
    link = page.get_by_role("link", name="nightly batch")
    wait_in_page(page, lambda: page.goto("/generate/") and link.count())
    link.click()
    expect(page.locator("#batch")).to_contain_text("Done", timeout=PATIENCE)
    return number(page)


def fill_the_rooms(page: Page, tmp_path: Path, questions: Path) -> Rooms:
    """Something in every room; by room and the name in a pattern, what to put there."""
    real: Rooms = {}
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    real["datasets", "pk"] = number(page)
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(questions)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    real["datasets/uploads", "pk"] = page.url.rstrip("/").rpartition("/")[2]

    recipe = {"prompt": "Write a review of a kettle.", "params": {"max_tokens": 30}}
    job = in_browser(
        page.context, "post", "/api/v1/jobs", {"name": "Kettles", "rows": 8, "recipe": recipe}
    )
    made = {"name": "Bank", "dataset": int(real["datasets", "pk"])}
    classifier = in_browser(page.context, "post", "/api/v1/classifiers", made)
    real["chat", "pk"] = (
        import_chat(page, tmp_path, "Some Markdown", 4).rstrip("/").rpartition("/")[2]
    )
    page.get_by_label("Message", exact=True).fill("What is the prompt cache?")
    page.keyboard.press("Enter")
    expect(page.locator("article.answer:not(.answer-live)")).to_have_count(3, timeout=PATIENCE)
    page.locator("[data-menu] > summary").click()
    page.get_by_role("button", name="Share a read-only copy").click()
    expect(page).to_have_url(re.compile("/chat/shared/"))
    real["chat", "token"] = page.url.rstrip("/").rpartition("/")[2]
    fill_the_library(page, real)
    page.goto(f"/classify/{classifier['id']}/")
    expect(page.get_by_role("main")).to_contain_text("held-out rows", timeout=PATIENCE)
    page.goto(f"/generate/{job['id']}/")
    expect(page.locator("#job-tag")).to_have_text("Done", timeout=PATIENCE)
    page.goto("/generate/recipes/")
    recipe = page.locator("main a[href^='/generate/recipes/']").first.get_attribute("href")
    real["generate/recipes", "pk"] = str(recipe).split("/")[-2]
    page.goto("/tools/")
    shared = page.get_by_role("region", name="Shared")
    shared.get_by_label("Name").fill("Kettle")
    shared.get_by_label("Address").fill("http://127.0.0.1:9/mcp")
    shared.get_by_role("button", name="Add tool server").click()
    page.get_by_role("link", name="Edit Kettle").click()
    arrive(page, r"/tools/\d+/")
    real["tools", "pk"] = number(page)
    servers = in_browser(page.context, "get", "/api/v1/servers")
    real["classify", "pk"], real["generate", "pk"] = str(classifier["id"]), str(job["id"])
    real["servers", "pk"] = str(servers["items"][0]["id"])
    page.goto(f"/servers/{real['servers', 'pk']}/doctor/")
    page.get_by_role("button", name="Examine").click()
    expect(page.get_by_role("heading", name="Mend it")).to_be_visible(timeout=PATIENCE)
    real["generate", "index"] = "0"
    real["classify", "number"] = real["datasets", "index"] = "1"
    return real


def fill_the_library(page: Page, real: Rooms) -> None:
    """A project with a document, a prompt and a preset."""
    page.goto("/chat/projects/")
    page.get_by_label("Name").fill("Tea house")
    page.get_by_role("button", name="Create project").click()
    arrive(page, r"/chat/projects/\d+/")
    real["chat/projects", "pk"] = number(page)
    menu = {"name": "Menu.md", "mimeType": "text/markdown", "buffer": b"# Menu\n\nGreen tea."}
    page.locator("[data-document-files]").set_input_files(menu)  # type: ignore[arg-type]
    row = page.get_by_role("article", name="Menu.md")
    expect(row).to_contain_text("passage", timeout=PATIENCE)
    link = row.get_by_role("link", name="Menu.md").get_attribute("href")
    real["chat/documents", "pk"] = str(link).rstrip("/").rpartition("/")[2]
    preset = in_browser(page.context, "post", "/api/v1/presets", {"name": "Calm"})
    real["settings/presets", "pk"] = str(preset["id"])
    page.goto("/settings/people/")
    page.get_by_role("button", name="Invite").click()
    page.locator("#invite-dialog input[name=username]").fill("mira")
    page.get_by_role("button", name="Create link").click()
    remove = page.locator("a[href$='/remove/']").first.get_attribute("href")
    real["settings/people", "pk"] = str(remove).split("/")[-3]
