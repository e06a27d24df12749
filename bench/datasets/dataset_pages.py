"""How much processor time the pages of a large dataset take.

A workbench of its own gets a dataset of made-up tickets with labels, some without, some twice.
Every page of it is asked for in turn. Printed is the processor time that the web process spent on
an answer, as a median; above the limit the exit code is 1.

Run: `.venv/bin/python -m bench.datasets.dataset_pages [--rows 100000]`. Other load does not count,
but is felt.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx2

from bench.generation.job_pages import FRAGMENT, LIMIT_MS, ROOT, measure, ticket
from tests.stack import Stack

if TYPE_CHECKING:
    from apps.files import ExampleRow

LABELS = 64
PAGES = (
    *("", "summary/", "examples/", "examples/?after={middle}", "examples/?before={last}"),
    *("examples/?label=label+7", "examples/?unlabelled=1", "examples/?split=test"),
    *("examples/?issue=duplicate", "examples/?issue=conflict", "examples/?issue=leak"),
    *("examples/?q=invoice", "examples/?q=nobody+wrote+this", "history/", "rejected/"),
    *("near/", "label/"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.datasets.dataset_pages")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make(given.rows)))
        return 0
    with Stack() as stack:
        [web, *_] = stack.processes("uvicorn")
        dataset = made_in(stack, given.rows)
        with httpx2.Client(base_url=stack.url, timeout=60, follow_redirects=True) as browser:
            browser.get(stack.login_url)
            token = browser.cookies["workbench_csrf"]
            browser.post(stack.login_url, headers={"X-CSRFToken": token})
            pages = [measure(browser, web, "/datasets/")]
            for page in PAGES:
                path = page.format(middle=given.rows // 2, last=given.rows - 1)
                headers = FRAGMENT if path.startswith("summary") else None
                pages.append(measure(browser, web, f"/datasets/{dataset}/{path}", headers))
    print(f"pages {max(pages):.0f} ms, wanted {LIMIT_MS:.0f}")
    return 0 if max(pages) <= LIMIT_MS else 1


def made_in(stack: Stack, rows: int) -> int:
    """Make the dataset in the database of a stack; its key."""
    made = subprocess.run(
        [sys.executable, "-m", "bench.datasets.dataset_pages", "--make", "--rows", str(rows)],
        cwd=ROOT,
        env=stack.processes("uvicorn")[0].environ(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(json.loads(made.stdout.splitlines()[-1])["dataset"])


def make(rows: int) -> dict[str, int]:
    """Run in a process of its own, on the stack's database: a dataset with some texts twice."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from django.contrib.auth.models import User

    from apps.datasets.services import create_dataset

    owner = User.objects.order_by("pk")[0]
    dataset = create_dataset(
        owner=owner, name="Tickets", rows=tickets(rows), origin="bench", unlabelled=True
    )
    return {"dataset": dataset.pk}


def tickets(rows: int) -> "Iterator[ExampleRow]":
    """Yield made-up rows: a tenth without a label, a tenth for tests, some texts twice."""
    from apps.files import ExampleRow

    dice, text = random.Random(0), ""
    for number in range(rows):
        if number % 20 != 5:  # else the text of the row before, with another split
            text = str(ticket(dice, number)["text"])
        label = "" if number % 10 == 0 else f"label {dice.randrange(LABELS)}"
        yield ExampleRow(text, label, "test" if number % 10 == 5 else "train")


if __name__ == "__main__":
    sys.exit(main())
