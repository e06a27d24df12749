"""Fills a workbench through its pages and its API, as its owner would within an hour."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from apps.generation.recipe.library.starters import BY_KEY
from tests.journeys.conftest import in_browser
from tests.screenshots import sample_chats
from tests.screenshots.sample_pages import examine, make_project

ROOT = Path(__file__).parent.parent.parent
QUESTIONS = ROOT / "bench" / "data" / "banking77_train.csv"
LABELS, ROWS_PER_LABEL = 24, 30
PATIENCE = 300_000


@dataclass(frozen=True)
class Sample:
    """The addresses of what was made."""

    pages: dict[str, str]
    """By name of the picture."""


def fill(page: Page, folder: Path) -> Sample:
    """Fill the workbench that `page` is logged in to; `folder` takes files to upload."""
    dataset = _import_dataset(page, _write_questions(folder / "questions.csv"))
    unlabelled = _import_dataset(page, _write_unlabelled(folder / "inbox.csv"))
    classifier = _post(page, "classifiers", {"name": "Bank questions", "dataset": dataset})["id"]
    jobs = [_start_job(page, *job) for job in _JOBS]
    _post(page, "servers", {"name": "Laptop", "base_url": "http://127.0.0.1:9/v1"})
    typical = _import_chats(page, folder / "chats.json", sample_chats.typical())
    long = _import_chats(page, folder / "long.json", [sample_chats.long()])
    project, document = make_project(page)
    examine(page)
    _wait_for(page, f"/classify/{classifier}/", "held-out rows")
    for job in jobs:
        _until(page, f"jobs/{job}", lambda job: job["status"] in {"done", "failed", "paused"})
    return Sample(
        {
            "chat-new": "/chat/",
            "chat": typical,
            "chat-long": long,
            "chat-import": "/chat/import/",
            "chat-preferences": "/chat/preferences/",
            "chat-projects": "/chat/projects/",
            "chat-project": project,
            "chat-document": document,
            "datasets": "/datasets/",
            "dataset": f"/datasets/{dataset}/",
            "dataset-label": f"/datasets/{unlabelled}/label/",
            "dataset-history": f"/datasets/{dataset}/history/",
            "dataset-new": "/datasets/new/",
            "dataset-import": _upload(page, folder / "questions.csv"),
            "classifiers": "/classify/",
            "classifier-new": f"/classify/new/?dataset={dataset}",
            "classifier": f"/classify/{classifier}/",
            **{
                f"classifier-{part}": f"/classify/{classifier}/{part}/"
                for part in ("thresholds", "improve", "map", "versions", "chat", "export", "files")
            },
            "jobs": "/generate/",
            "job-new": "/generate/new/",
            "recipe-editor": "/generate/new/?recipe=chat",
            "job": f"/generate/{jobs[0]}/",
            "job-cards": f"/generate/{jobs[0]}/cards/",
            "job-review": f"/generate/{jobs[0]}/review/",
            "job-row": f"/generate/{jobs[0]}/rows/0/",
            "job-error": f"/generate/{jobs[-1]}/",
            "recipes": "/generate/recipes/",
            "servers": "/servers/",
            "server-history": "/servers/1/history/?span=hour",
            "server-alerts": "/servers/alerts/",
            "plan-server": "/servers/plan/",
            "connect-program": "/servers/connect/",
            "usage": "/servers/usage/",
            "measure-server": "/servers/1/measure/",
            "examine-server": "/servers/1/doctor/",
            "tools": "/tools/",
            "settings": "/settings/",
        }
    )


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


def _post(page: Page, path: str, body: dict[str, Any]) -> Any:
    return in_browser(page.context, "post", f"/api/v1/{path}", body)


def _start_job(page: Page, name: str, rows: int, recipe: dict[str, Any]) -> int:
    return int(_post(page, "jobs", {"name": name, "rows": rows, "recipe": recipe})["id"])


def _until(page: Page, path: str, condition: Callable[[Any], bool]) -> None:
    for _ in range(PATIENCE // 500):
        if condition(in_browser(page.context, "get", f"/api/v1/{path}")):
            return
        page.wait_for_timeout(500)  # between two requests for the state
    raise TimeoutError(path)


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


def _upload(page: Page, path: Path) -> str:
    page.goto("/datasets/new/")
    page.locator("input[type=file]").set_input_files(path)
    expect(page).to_have_url(re.compile(r"/datasets/uploads/"))
    return page.url


def _import_dataset(page: Page, file: Path) -> int:
    _upload(page, file)
    page.get_by_role("button", name=re.compile("^Import .*row")).click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    return int(page.url.rstrip("/").rpartition("/")[2])


def _import_chats(page: Page, path: Path, chats: list[dict[str, Any]]) -> str:
    """Import them and return the address of the first."""
    path.write_text(json.dumps(chats))
    page.goto("/chat/import/")
    page.get_by_label("File").set_input_files(path)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text(
        re.compile(r"messages? imported"), timeout=PATIENCE
    )
    found = in_browser(page.context, "get", "/api/v1/conversations")["items"]
    title = chats[0]["chat"]["title"][:50]
    return next(f"/chat/{one['id']}/" for one in found if one["title"].startswith(title))
