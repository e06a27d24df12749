"""Fills a workbench through its pages and its API, as its owner would within an hour."""

import csv
import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from apps.generation.recipe.library.starters import BY_KEY
from tests.screenshots.samples import chats
from tests.screenshots.samples.calls import PATIENCE, get, post, send_form, until
from tests.screenshots.samples.projects import examine, make_project

ROOT = Path(__file__).parents[3]
QUESTIONS = ROOT / "bench" / "data" / "banking77_train.csv"
LABELS, ROWS_PER_LABEL = 24, 30


def fill(page: Page, folder: Path, begun: Mapping[str, object]) -> dict[str, object]:
    """Fill the workbench that `page` is logged in to, and return the numbers of what was made.

    Args:
        folder: takes files to upload.
        begun: what was made before.
    """
    questions = _write_questions(folder / "questions.csv")
    dataset = _import_dataset(page, questions)
    unlabelled = _import_dataset(page, _write_unlabelled(folder / "inbox.csv"))
    classifier = post(page, "classifiers", {"name": "Bank questions", "dataset": dataset})["id"]
    jobs = [_start_job(page, *job) for job in _JOBS]
    chat = import_chats(page, chats.typical())
    number = chat.rstrip("/").rpartition("/")[2]
    share = post(page, f"conversations/{number}/shares")["token"]
    project, document = make_project(page)
    examine(page)
    page.goto(f"/datasets/{dataset}/near/")
    page.get_by_role("button", name="Find near-duplicates").click()
    _wait_for(page, f"/classify/{classifier}/", "held-out rows")
    for job in jobs:
        until(page, f"jobs/{job}", lambda job: job["status"] in {"done", "failed", "paused"})
    return {
        **begun,
        **_library(page),
        "chat": chat,
        "shared": f"/chat/shared/{share}/",
        "project": project,
        "document": document,
        "dataset": dataset,
        "unlabelled": unlabelled,
        "upload": choose_upload(page, questions.name, questions.read_bytes()),
        "classifier": classifier,
        "job": jobs[0],
        "failed_job": jobs[-1],
        "recipe": _saved_recipe(page),
    }


def _library(page: Page) -> dict[str, object]:
    """A prompt, a preset, a tool server and a second person."""
    review = "Review this {{language}} code:\n\n{{code}}"
    send_form(page, "/chat/prompts/", name="review-code", text=review)
    tool = {"name": "Kettle", "url": "http://127.0.0.1:9/mcp", "transport": "http", "enabled": "on"}
    send_form(page, "/tools/add/", **tool)
    page.goto("/tools/")
    edit = str(page.get_by_role("link", name="Edit Kettle").get_attribute("href"))
    invited = send_form(page, "/settings/people/", username="mira", role="member")
    link = re.search(r"/login/link/[^/\"<]+/", invited)
    person = re.search(r"/settings/people/(\d+)/remove/", invited)
    assert link is not None
    assert person is not None
    return {
        "preset": post(page, "presets", {"name": "Calm", "params": {"temperature": 0.2}})["id"],
        "tool": edit.strip("/").rpartition("/")[2],
        "invitation": link[0],
        "person": person[1],
    }


def _saved_recipe(page: Page) -> str:
    page.goto("/generate/recipes/")
    links = page.get_by_role("main").locator("a[href^='/generate/recipes/']")
    return str(links.first.get_attribute("href"))


_JOBS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("Kettle and toaster reviews", 60, BY_KEY["reviews"].recipe),
    ("Support tickets", 30, BY_KEY["tickets"].recipe),
    (
        "Too strict",
        6,
        {
            "prompt": "Write a review of a kettle.",
            "params": {"max_tokens": 20},
            "checks": [{"kind": "length", "min": 5000}],
        },
    ),
)


def _start_job(page: Page, name: str, rows: int, recipe: dict[str, Any]) -> int:
    return int(post(page, "jobs", {"name": name, "rows": rows, "recipe": recipe})["id"])


def _wait_for(page: Page, address: str, text: str) -> None:
    page.goto(address)
    expect(page.get_by_role("main")).to_contain_text(text, timeout=PATIENCE)


def _write_questions(path: Path) -> Path:
    kept: dict[str, int] = {}
    with QUESTIONS.open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label"])
        writer.writerow(["", "card_arrival"])
        for row in csv.DictReader(source):
            label = row["label"]
            if (label in kept or len(kept) < LABELS) and kept.get(label, 0) < ROWS_PER_LABEL:
                kept[label] = kept.get(label, 0) + 1
                writer.writerow([row["text"], label])
    return path


def _write_unlabelled(path: Path) -> Path:
    with QUESTIONS.open(encoding="utf-8", newline="") as source, path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text"])
        writer.writerows([row["text"]] for row in islice(csv.DictReader(source), 9_000, 9_060))
    return path


def choose_upload(page: Page, name: str, content: bytes) -> str:
    """Upload a file and return the address of its columns."""
    page.goto("/datasets/new/")
    file = {"name": name, "mimeType": "text/csv", "buffer": content}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    return page.url


def _import_dataset(page: Page, file: Path) -> int:
    choose_upload(page, file.name, file.read_bytes())
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    return int(page.url.rstrip("/").rpartition("/")[2])


def import_chats(page: Page, export: list[dict[str, Any]]) -> str:
    """Import them and return the address of the first."""
    content = json.dumps(export).encode()
    page.goto("/chat/import/")
    file = {"name": "chats.json", "mimeType": "application/json", "buffer": content}
    page.get_by_label("File").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text(
        re.compile(r"messages? imported"), timeout=PATIENCE
    )
    found = get(page, "conversations")["items"]
    title = export[0]["chat"]["title"][:50]
    return next(f"/chat/{one['id']}/" for one in found if one["title"].startswith(title))
