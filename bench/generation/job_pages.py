"""How much processor time the pages of a large job take.

A workbench of its own gets a finished job of made-up tickets with drawn values, texts and scores.
Every page of it is asked for in turn. Printed is the processor time that the web process spent on
an answer, as a median; above a limit the exit code is 1.

Run: `.venv/bin/python -m bench.generation.job_pages [--rows 20000]`. Other load does not count, but
is felt.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MS, REVIEW_LIMIT_MS = 200.0, 100.0
ROUNDS = 5
FRAGMENT = {"HX-Request": "true"}
RECIPE: dict[str, Any] = {
    "columns": [
        {"name": "topic", "kind": "category", "values": ["billing", "crash", "login", "delivery"]},
        {"name": "mood", "kind": "category", "values": ["annoyed", "polite", "curt"]},
        {"name": "text", "kind": "text", "prompt": "A {{ mood }} ticket on {{ topic }}."},
        {
            "name": "judge",
            "kind": "judge",
            "criteria": [{"name": "quality", "description": "Is it believable?", "at_least": 2}],
        },
    ]
}
PAGES = (
    *("", "rows/", "rows/?page=500", "rows/?status=rejected", "rows/?status=unseen"),
    *("rows/?q=invoice", "rows/?is.topic=crash", "rows/?sort=low:quality", "rows/?is.quality=2"),
    *("quality/", "use/", "recipe/", "progress/", "cards/", "cards/?sort=low:quality"),
    *("rows/17/", "diversity/"),
)
COMPARISON = "near/?by=text"
"""All rows with all others, when somebody asks for it: printed, without a limit."""
REVIEWS = (
    *("review/", "review/?status=unseen", "review/?status=rejected"),
    *("review/?status=unseen&sort=low:quality", "review/?status=unseen&at=9000"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.generation.job_pages")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make(given.rows)))
        return 0
    with Stack() as stack:
        [web, *_] = stack.processes("uvicorn")
        job = made_in(stack, given.rows)
        with httpx2.Client(base_url=stack.url, timeout=60, follow_redirects=True) as browser:
            browser.get(stack.login_url)
            token = browser.cookies["workbench_csrf"]
            browser.post(stack.login_url, headers={"X-CSRFToken": token})
            pages = [measure(browser, web, f"/generate/{job}/{page}") for page in PAGES]
            pages.append(measure(browser, web, "/generate/"))
            measure(browser, web, f"/generate/{job}/{COMPARISON}")
            reviews = [measure(browser, web, f"/generate/{job}/{page}") for page in REVIEWS]
            address = f"/generate/{job}/review/?status=unseen&at=5000"
            reviews.append(measure(browser, web, address, FRAGMENT))
    print(f"pages {max(pages):.0f} ms, wanted {LIMIT_MS:.0f}")
    print(f"review {max(reviews):.0f} ms, wanted {REVIEW_LIMIT_MS:.0f}")
    return 0 if max(pages) <= LIMIT_MS and max(reviews) <= REVIEW_LIMIT_MS else 1


def made_in(stack: Stack, rows: int) -> int:
    """Make the job in the database of a stack; its key."""
    made = subprocess.run(
        [sys.executable, "-m", "bench.generation.job_pages", "--make", "--rows", str(rows)],
        cwd=ROOT,
        env=stack.processes("uvicorn")[0].environ(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(json.loads(made.stdout.splitlines()[-1])["job"])


def measure(
    browser: httpx2.Client, web: psutil.Process, path: str, headers: dict[str, str] | None = None
) -> float:
    """Ask for a page some times, the first not counted; the median of its processor time in ms."""
    spent = []
    for _ in range(ROUNDS + 1):
        begun = web.cpu_times()
        answer = browser.get(path, headers=headers)
        ended = web.cpu_times()
        spent.append(1000 * (ended.user - begun.user + ended.system - begun.system))
        assert answer.status_code in (200, 286), f"{path}: {answer.status_code}"
        assert "/login" not in str(answer.url), "nobody is logged in"
    median = float(statistics.median(spent[1:]))
    print(f"{path:44} {median:5.0f} ms {len(answer.content) / 1024:6.0f} KiB", flush=True)
    return median


def make(rows: int) -> dict[str, int]:
    """Run in a process of its own, on the stack's database: a job that is done."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from datetime import timedelta

    from django.contrib.auth.models import User
    from django.utils import timezone

    from apps.batch.models import Batch, Item
    from apps.generation.job_request import JobRequest
    from apps.generation.recipe.parse import parse
    from apps.generation.services import create_job
    from apps.servers.models import Server
    from apps.similarity.minhash import minhash_signature

    owner, server = User.objects.order_by("pk")[0], Server.objects.order_by("pk")[0]
    request = JobRequest(name="Support tickets", rows=rows, seed=7, recipe=parse(RECIPE))
    job = create_job(request, owner=owner, server=server)
    Batch.objects.filter(pk=job.batch_id).update(status="paused")
    dice, begun = random.Random(0), timezone.now() - timedelta(seconds=rows / 20)
    items = list(Item.objects.filter(batch_id=job.batch_id).order_by("index"))
    for item in items:
        row = ticket(dice, item.index)
        signature = minhash_signature(row["text"])
        item.output, item.raw = row, json.dumps(row)
        rejected = row["quality"] < 2
        item.status = "rejected" if rejected else "accepted"
        item.code, item.reason = ("judged", "Quality is 1.") if rejected else ("", "")
        item.minhash = None if signature is None else signature.tobytes()
        item.fingerprint = None if rejected else f"{dice.getrandbits(128):032x}"
        item.reviewed = item.index % 10 == 0
        item.finished = begun + timedelta(seconds=item.index / 20)
        item.prompt_tokens, item.completion_tokens, item.attempts = 90, 60, 1
    changed = ("output", "raw", "status", "code", "reason", "minhash", "fingerprint", "reviewed")
    usage = ("finished", "prompt_tokens", "completion_tokens", "attempts")
    Item.objects.bulk_update(items, [*changed, *usage], batch_size=500)
    Batch.objects.filter(pk=job.batch_id).update(
        status="done",
        started=begun,
        finished=timezone.now(),
        active_seconds=rows / 20,
        prompt_tokens=90 * rows,
        completion_tokens=60 * rows,
    )
    return {"job": job.pk}


def ticket(dice: random.Random, number: int) -> dict[str, Any]:
    """A ticket that nobody wrote."""
    things = ["the invoice of May", "my parcel", "the export", "a password mail", "the app on 5.2"]
    haps = ["never came", "was booked twice", "stops at once", "shows an empty page", "is wrong"]
    asks = ["Can you look into it?", "I need it by Friday.", "Please call me.", "What now?"]
    text = (
        f"Since Monday {dice.choice(things)} {dice.choice(haps)}, although I tried it "
        f"{dice.randint(2, 9)} times. My number is {number * 7919 % 99991:05d}. {dice.choice(asks)}"
    )
    return {
        "topic": dice.choice(RECIPE["columns"][0]["values"]),
        "mood": dice.choice(RECIPE["columns"][1]["values"]),
        "text": text,
        "judge_reason": "Believable, names what happened and when.",
        "quality": dice.choice([1, 2, 3, 4, 4, 4, 5, 5]),
    }


if __name__ == "__main__":
    sys.exit(main())
