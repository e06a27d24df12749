"""More than fits on any page: many of each, long names without spaces, long texts."""

import csv
import io

from playwright.sync_api import Page

from apps.generation.recipe.library.starters import BY_KEY
from tests.screenshots.samples import chats
from tests.screenshots.samples.calls import add_file, post, send_form, until
from tests.screenshots.samples.data import QUESTIONS, choose_upload, import_chats

MANY = 24
WORD = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"
AREA = "customer_support_tier_2_escalations/"
PER_LABEL, LABELS = 9, 70
LONG_TEXT = "Describe the kettle, its lid, its handle and its sound in the morning. " * 30


def crowd(page: Page, numbers: dict[str, object]) -> dict[str, object]:
    """Fill every list, and make one of each thing that is long itself."""
    made = {**_long_dataset(page), **_long_chat(page), **_long_project(page)}
    job = {"name": WORD, "rows": 120, "recipe": BY_KEY["reviews"].recipe}
    made["long_job"] = post(page, "jobs", job)["id"]
    wide = {"columns": [*_columns(), *BY_KEY["chat"].recipe["columns"]]}
    many = {"name": WORD, "rows": 10, "recipe": wide, "server": numbers["laptop"], "model": "m"}
    made["wide_job"] = post(page, "jobs", many)["id"]
    for number in range(MANY):
        name = f"{WORD[:40]} {number}" if number % 4 == 0 else f"Plan {number} of the year"
        post(page, "projects", {"name": name})
        made["long_preset"] = post(page, "presets", {"name": name})["id"]
        send_form(page, "/chat/prompts/", name=f"prompt-{number}", text=LONG_TEXT)
        send_form(page, "/settings/people/", username=f"person{number}", role="member")
        send_form(page, "/settings/keys/", name=f"{name} import", scope="full", lane="person")
        waiting = {"name": name, "rows": 500, "recipe": BY_KEY["tickets"].recipe, "model": "m"}
        post(page, "jobs", waiting | {"server": numbers["laptop"]})
        add_file(page, "datasets", "small.csv", f"text,label\na{number},b\n".encode(), name=name)
    for number in range(9):
        address = f"http://127.0.0.1:{10 + number}"
        name = f"{WORD[:50]}{number}" if number % 4 == 0 else f"Rack {number}"
        post(page, "servers", {"name": name, "base_url": f"{address}/v1"})
        tool = {"name": name, "url": f"{address}/mcp", "transport": "http", "enabled": "on"}
        send_form(page, "/tools/add/", **tool)
    classifier = made["long_classifier"]
    until(page, f"classifiers/{classifier}", lambda one: one["status"] in {"ready", "failed"})
    until(page, f"jobs/{made['long_job']}", lambda one: one["status"] in {"done", "failed"})
    return made


def _columns() -> list[dict[str, object]]:
    values = [f"a customer of shop {number}" for number in range(12)]
    return [
        {"name": f"place_{number}_of_the_customer", "kind": "category", "values": values}
        for number in range(14)
    ]


def _long_dataset(page: Page) -> dict[str, object]:
    """Seventy labels with long names, and a file of forty columns before its import."""
    text = io.StringIO()
    writer, kept = csv.writer(text), dict[str, int]()
    writer.writerow(["text", "label"])
    with QUESTIONS.open(encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            label = row["label"]
            if (label in kept or len(kept) < LABELS) and kept.get(label, 0) < PER_LABEL:
                kept[label] = kept.get(label, 0) + 1
                more = " ".join([row["text"]] * 4) if kept[label] == 1 else row["text"]
                writer.writerow([more, AREA + label])
    name = f"{WORD} 2026"
    dataset = add_file(page, "datasets", "l.csv", text.getvalue().encode(), name=name)["id"]
    made = post(page, "classifiers", {"name": name, "dataset": dataset})
    until(page, f"classifiers/{made['id']}", lambda one: one["status"] in {"ready", "failed"})
    for share in range(10, 22):
        post(page, f"datasets/{dataset}/split", {"share": share / 100, "seed": share})
    rows = [{"text": f"{n}. {LONG_TEXT}"} for n in range(12)]
    post(page, f"datasets/{dataset}/examples", {"rows": rows})
    wide = ",".join(f"a_column_with_a_long_name_{n}" for n in range(40))
    cells = ",".join([LONG_TEXT[:300].replace(",", "")] * 40)
    upload = choose_upload(page, "wide.csv", f"{wide}\n{cells}\n{cells}\n".encode())
    return {
        "long_dataset": dataset,
        "long_classifier": made["id"],
        "wide_upload": upload,
    }


def _long_chat(page: Page) -> dict[str, object]:
    chat = import_chats(page, [chats.long()])
    number = chat.rstrip("/").rpartition("/")[2]
    token = post(page, f"conversations/{number}/shares")["token"]
    return {"long_chat": chat, "long_shared": f"/chat/shared/{token}/"}


def _long_project(page: Page) -> dict[str, object]:
    project = post(page, "projects", {"name": WORD, "instructions": LONG_TEXT})["id"]
    path = f"projects/{project}/documents"
    text = "\n\n".join(f"## Part {n}\n\n{LONG_TEXT}" for n in range(30)).encode()
    document = add_file(page, path, f"{WORD}.md", text)["id"]
    for number in range(12):
        add_file(page, path, f"Minutes {number}.txt", LONG_TEXT.encode())
    until(page, f"documents/{document}", lambda one: one["progress"] is None)
    return {"long_project": project, "long_document": f"/chat/documents/{document}/"}
