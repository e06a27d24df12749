"""How long the pages of a large dataset and of its classifier take.

A workbench of its own gets a dataset of made-up mails and, for their texts, made-up vectors: clouds
around a centre for each label. A classifier is trained on them (with one strength instead of five,
which no page can tell), then every page is asked for in turn. Printed is the median of the whole
answer; above the limit the exit code is 1.

Run: `.venv/bin/python -m bench.datasets.pages [--rows 100000] [--labels 150]`. Nothing else should
run.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import httpx2
import numpy as np

from tests.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MS = 500.0
ROUNDS = 5
AT_ONCE = 5_000
NOISE = 5.0
DATASET_PAGES = (
    *(
        "",
        "?label=label+7",
        "?q=order+77",
        "?issue=duplicate",
        "?split=test",
        "examples/?after=90000",
    ),
    *("summary/", "history/", "near/", "label/"),
)
CLASSIFIER_PAGES = (
    *("", "runs/1/charts/", "thresholds/", "runs/1/gates/", "map/", "runs/1/map/", "copies/"),
    *("runs/1/matrix/?all=1", "runs/1/rows/?truth=0&predicted=1"),
    *("improve/", "versions/", "chat/", "files/", "export/"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.datasets.pages")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=150)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make(given.rows, given.labels)))
        return 0
    with Stack() as stack:
        made = subprocess.run(
            [
                *(sys.executable, "-m", "bench.datasets.pages", "--make"),
                *("--rows", str(given.rows), "--labels", str(given.labels)),
            ],
            cwd=ROOT,
            env=stack.processes("uvicorn")[0].environ(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        keys = json.loads(made.stdout.splitlines()[-1])
        print(f"{given.rows:,} rows, {given.labels} labels, made in {keys['seconds']:.0f} s")
        with httpx2.Client(base_url=stack.url, timeout=60, follow_redirects=True) as browser:
            browser.get(stack.login_url)
            token = browser.cookies["workbench_csrf"]
            browser.post(stack.login_url, headers={"X-CSRFToken": token})
            slowest = max(
                measure(browser, path)
                for path in (
                    *("/datasets/", "/classify/"),
                    *(f"/datasets/{keys['dataset']}/{page}" for page in DATASET_PAGES),
                    *(f"/classify/{keys['classifier']}/{page}" for page in CLASSIFIER_PAGES),
                )
            )
    print(f"slowest {slowest:.0f} ms, wanted {LIMIT_MS:.0f}")
    return 0 if slowest <= LIMIT_MS else 1


def measure(browser: httpx2.Client, path: str) -> float:
    """Asks for a page some times, the first not counted; the median in milliseconds."""
    spent = []
    for _ in range(ROUNDS + 1):
        begun = time.perf_counter()
        answer = browser.get(path)
        spent.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        assert "/login" not in str(answer.url), "nobody is logged in"
    median = statistics.median(spent[1:])
    print(f"{path:34} {median:7.0f} ms {len(answer.content) / 1024:7.0f} KiB", flush=True)
    return median


def make(rows: int, labels: int) -> dict[str, float]:
    """Run in a process of its own, on the stack's database: the dataset and its classifier."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from django.contrib.auth.models import User

    from apps.classifiers import services
    from apps.classifiers.training import trainer
    from apps.classifiers.training.embed_rows import embedding_target
    from apps.datasets.services import create_dataset
    from apps.files import ExampleRow
    from apps.work import services as work
    from apps.work.tasks import run_task

    # Trained here, not by the stack's worker.
    run_task.delay = lambda task_id: None  # type: ignore[method-assign, assignment, return-value]
    begun = time.perf_counter()
    owner = User.objects.order_by("pk")[0]
    lots = np.random.default_rng(0).integers(0, labels, size=rows).tolist()
    dataset = create_dataset(
        owner=owner,
        name=f"{rows:,} mails",
        rows=(ExampleRow(text, f"label {lots[n]}") for n, text in enumerate(texts(rows))),
        origin="bench",
    )
    made, run = services.create_classifier(owner=owner, name=f"{labels} labels", dataset=dataset)
    asyncio.run(give_vectors(embedding_target(made), rows, lots, labels))
    trainer.STRENGTHS = (10.0, 30.0)  # type: ignore[assignment]  # the fewest there can be
    assert run.task_id
    work.run(run.task_id)
    run.refresh_from_db()
    assert run.is_ready, run.error
    spent = time.perf_counter() - begun
    return {"dataset": dataset.pk, "classifier": made.pk, "seconds": spent}


def texts(rows: int) -> Iterator[str]:
    """Mails that nobody wrote; every thousandth comes a second time."""
    for number in range(rows):
        told = number - 1 if number % 1_000 == 1 else number
        yield f"Where is what I asked for? It was order {told:07d} and nobody answers my letters."


async def give_vectors(target: object, rows: int, lots: list[int], labels: int) -> None:
    """As if all texts had been embedded before."""
    from apps.embeddings.cache import text_hash
    from apps.embeddings.saver import VectorSaver
    from apps.embeddings.services import identify
    from apps.llm.client import close_clients
    from apps.runtime.redis import close_async_redis
    from apps.servers.services import Target

    assert isinstance(target, Target)
    try:
        embedder = await identify(target)
        dimensions = (await embedder.target.client.embed(embedder.target.model, ["one"])).shape[1]
    finally:
        await close_clients()
        await close_async_redis()

    async def saved(count: int) -> None:
        pass

    random = np.random.default_rng(1)
    centres = random.normal(size=(labels, dimensions)).astype(np.float32)
    saver = VectorSaver(embedder.fingerprint, embedder.target.model, saved, expires=date.max)
    hashes = [text_hash(text) for text in texts(rows)]
    for start in range(0, rows, AT_ONCE):
        part = centres[lots[start : start + AT_ONCE]]
        part = part + random.normal(0, NOISE, part.shape).astype(np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        saver.add(hashes[start : start + AT_ONCE], part)
        await saver.flush()


if __name__ == "__main__":
    sys.exit(main())
