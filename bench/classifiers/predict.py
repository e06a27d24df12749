"""What a prediction costs above its embedding.

The same text goes straight to the embedding server and through `POST .../predict`, in turns, each
over a connection of its own that stays open. No text comes twice, so nothing comes from a cache;
who is first changes from text to text. The classifier has Banking77's 77 labels. Printed is the
difference: wanted is at most 15 ms in the median.

A second round says what is left when the text was seen before: no embedding, only the answer.

Run: `.venv/bin/python -m bench.classifiers.predict [--texts 200]`. The exit code is 1 above the
limit. Nothing else should run.
"""

import argparse
import csv
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import psutil

from tests.stack import Stack

DATA = Path(__file__).parents[1] / "data"
LIMIT_MS = 15.0
ROWS_PER_LABEL = 8
WARM_UP = 10
TRAIN_SECONDS = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.classifiers.predict")
    parser.add_argument("--texts", type=int, default=200)
    given = parser.parse_args()
    texts = unseen_texts(given.texts + WARM_UP)
    with Stack() as stack:
        web = stack.processes("uvicorn")[0]
        environment = web.environ()
        server = httpx2.Client(
            base_url=environment["EMBED_BASE_URL"],
            headers={"authorization": f"Bearer {environment.get('EMBED_API_KEY', '')}"},
            timeout=60,
        )
        key = stack.manage("create_api_key", "bench").strip()
        api = httpx2.Client(
            base_url=f"{stack.url}/api/v1",
            headers={"authorization": f"Bearer {key}"},
            timeout=60,
        )
        with server, api:
            where = f"/classifiers/{trained(api)}/predict"
            model = server.get("models").json()["data"][0]["id"]

            def direct(text: str) -> float:
                return timed(server, "embeddings", {"model": model, "input": [text]})

            def ours(text: str) -> float:
                return timed(api, where, {"texts": [text]})

            for text in texts[:WARM_UP]:
                direct(text)
                ours(text)
            texts = texts[WARM_UP:]
            good = compare(direct, ours, texts, web)
            seen = [ours(text) for text in texts]
            print(f"seen before      {show(seen)}")
    return 0 if good else 1


def compare(
    direct: Callable[[str], float],
    ours: Callable[[str], float],
    texts: Sequence[str],
    web: psutil.Process,
) -> bool:
    """Asks both sides for each text and prints what ours took longer."""
    pairs = []
    before = sum(web.cpu_times()[:2])
    for number, text in enumerate(texts):
        if number % 2:
            through = ours(text)
            alone = direct(text)
        else:
            alone = direct(text)
            through = ours(text)
        pairs.append((alone, through))
    spent = (sum(web.cpu_times()[:2]) - before) / len(texts) * 1000
    added = [through - alone for alone, through in pairs]
    print(f"{len(texts)} texts, one a request")
    print(f"embedding server {show([alone for alone, _ in pairs])}")
    print(f"workbench        {show([through for _, through in pairs])}, {spent:.1f} ms of CPU each")
    print(f"added            {show(added)}, wanted {LIMIT_MS:.0f} ms")
    return statistics.median(added) <= LIMIT_MS


def timed(client: httpx2.Client, where: str, body: object) -> float:
    """Milliseconds from the request to the whole answer."""
    begun = time.perf_counter()
    reply = client.post(where, json=body)
    seconds = time.perf_counter() - begun
    assert reply.status_code == 200, reply.text
    return seconds * 1000


def show(values: Sequence[float]) -> str:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{statistics.median(ordered):7.1f} ms median, {p95:7.1f} p95"


def unseen_texts(count: int) -> list[str]:
    """Texts of the test set, which nothing was trained on."""
    with (DATA / "banking77_test.csv").open(encoding="utf-8", newline="") as file:
        texts = list(dict.fromkeys(row["text"] for row in csv.DictReader(file)))
    return texts[:: max(1, len(texts) // count)][:count]


def trained(api: httpx2.Client) -> int:
    """A classifier of 77 labels, few rows each: what it costs to ask does not depend on rows."""
    taken: Counter[str] = Counter()
    lines = []
    with (DATA / "banking77_train.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            taken[row["label"]] += 1
            if taken[row["label"]] <= ROWS_PER_LABEL:
                lines.append((row["text"], row["label"]))
    dataset = api.post("/datasets", files={"file": ("bench.csv", as_csv(lines), "text/csv")})
    assert dataset.status_code == 201, dataset.text
    made = api.post("/classifiers", json={"name": "Bench", "dataset": dataset.json()["id"]})
    assert made.status_code == 202, made.text
    found = int(made.json()["id"])
    deadline = time.monotonic() + TRAIN_SECONDS
    while (seen := api.get(f"/classifiers/{found}").json())["status"] != "ready":
        assert seen["status"] not in {"failed", "cancelled"}, seen["error"]
        assert time.monotonic() < deadline, seen["progress"]
        time.sleep(0.5)
    return found


def as_csv(lines: Sequence[tuple[str, str]]) -> bytes:
    quoted = ('"' + text.replace('"', '""') + f'",{label}\r\n' for text, label in lines)
    return ("text,label\r\n" + "".join(quoted)).encode()


if __name__ == "__main__":
    sys.exit(main())
