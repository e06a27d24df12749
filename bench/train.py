"""What training costs: embedding against a bare client, fitting against bare scikit-learn.

Embedding: the product's way (cache, permits, saving) against an asynchronous client that only sends
batches as wide, and against one text a request. Wanted: at least 0.95 of the first rate, four times
the second; the second run sends nothing.

Fitting: N x 384 vectors with 77 labels. The product's final fit against the best bare call,
LogisticRegression on float32 with one BLAS thread, in processes of their own so that each one's
peak memory is its own. Wanted: at most 1.1 of the time and 1.5 of the memory. With `--search` also
what the whole search (five strengths, five folds) costs.

Run: `.venv/bin/python -m bench.train [--rows 100000] [--texts 2000] [--search]`. The exit code is 1
where a figure misses what is wanted. A million rows: `--rows 1000000 --texts 0 --search`.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench.banking77 import DATA, REPOSITORY, redis_in, settings_for

DIMENSIONS = 384
LABELS = 77
BATCH = 32
WIDTH = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.train")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--search", action="store_true", help="the whole search too")
    parser.add_argument("--fit", choices=["ours", "bare", "search"], help="internal")
    given = parser.parse_args()
    if given.fit:
        return fit(given.fit, given.rows)
    good = embedding(given.texts) if given.texts else True
    good &= fitting(given.rows, search=given.search) if given.rows else True
    return 0 if good else 1


# --- Embedding ----------------------------------------------------------------


def embedding(count: int) -> bool:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings_for(folder)
        stack.enter_context(redis_in(folder))
        import django

        django.setup()
        from django.core.management import call_command

        from apps.embedded.embedding_model import prepare
        from apps.llm.models import DefaultServer, Server, Use
        from tests.llama_process import LlamaProcess

        call_command("migrate", verbosity=0)
        cache = Path(os.environ.get("WORKBENCH_TEST_CACHE", REPOSITORY / ".cache"))
        llama = stack.enter_context(
            LlamaProcess(
                prepare(cache, print),
                embeddings=True,
                parallel=WIDTH,
                context_per_slot=512,
                threads=2,
            )
        )
        server = Server(name="Bench", base_url=llama.base_url)
        server.set_key(llama.api_key)
        server.save()
        DefaultServer.objects.create(use=Use.EMBEDDINGS, server=server)
        return compare_embedding(server, count)


def compare_embedding(server, count: int) -> bool:  # type: ignore[no-untyped-def]
    import csv

    from apps.core.redis import close_async_redis
    from apps.embeddings.cache import Stats, embed, identify
    from apps.llm.client import close_clients
    from apps.llm.services import target
    from apps.llm.slots import Lane

    with (DATA / "banking77_train.csv").open(encoding="utf-8", newline="") as file:
        texts = list(dict.fromkeys(row["text"] for row in csv.DictReader(file)))[: count * 3]
    # Every third text each, so that no part is longer than another and no cache helps.
    parts = [texts[start::3] for start in range(3)]

    async def measure() -> tuple[float, float, float, int]:
        try:
            embedder = await identify(target(server))
            client, model = embedder.target.client, embedder.target.model
            await client.embed(model, ["warm", "up"])
            alone = parts[2][: max(100, count // 10)]
            begun = time.perf_counter()
            for text in alone:
                await client.embed(model, [text])
            one_by_one = len(alone) / (time.perf_counter() - begun)
            rates = []
            stats = Stats()
            # Turn by turn, so that whatever else the machine does meets both.
            for half in range(2):
                bare_part = parts[0][half::2]
                begun = time.perf_counter()
                await bare(client, model, bare_part)
                bare_rate = len(bare_part) / (time.perf_counter() - begun)
                our_part = parts[1][half::2]
                begun = time.perf_counter()
                await embed(embedder, our_part, lane=Lane.BATCH, stats=stats)
                rates.append((bare_rate, len(our_part) / (time.perf_counter() - begun)))
            again = Stats()
            await embed(embedder, parts[1], lane=Lane.BATCH, stats=again)
            bare_rate, ours = (float(np.mean(column)) for column in zip(*rates, strict=True))
            return bare_rate, ours, one_by_one, again.sent
        finally:
            await close_clients()
            await close_async_redis()

    bare_rate, ours, one_by_one, sent = asyncio.run(measure())
    print(f"embedding, bare client, {WIDTH} x {BATCH}  {bare_rate:7.1f} texts/s")
    print(f"embedding, workbench             {ours:7.1f} texts/s, {ours / bare_rate:.3f} of that")
    print(
        f"embedding, one text a request    {one_by_one:7.1f} texts/s, ours {ours / one_by_one:.1f}x"
    )
    print(f"second run                       {sent:5} texts sent")
    return ours / bare_rate >= 0.95 and ours / one_by_one >= 4 and sent == 0


async def bare(client, model: str, texts: list[str]) -> None:  # type: ignore[no-untyped-def]
    """As short as it gets: batches of texts of like length, WIDTH at a time, nothing kept."""
    ordered = sorted(texts, key=len)
    batches = [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]

    async def worker() -> None:
        while batches:
            await client.embed(model, batches.pop())

    await asyncio.gather(*(worker() for _ in range(WIDTH)))


# --- Fitting ------------------------------------------------------------------


def fitting(rows: int, *, search: bool) -> bool:
    found = {}
    for kind in ("bare", "ours", *(["search"] if search else [])):
        command = [sys.executable, "-m", "bench.train", "--rows", str(rows), "--fit", kind]
        env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=REPOSITORY, env=env
        )
        seconds, start, peak, extra = done.stdout.split(maxsplit=3)
        found[kind] = float(seconds), float(peak)
        print(
            f"{kind:6} {rows:,} x {DIMENSIONS} x {LABELS}: {float(seconds):7.1f} s, peak "
            f"{float(peak):.0f} MB ({float(peak) - float(start):.0f} above the start), "
            f"{extra.strip()}"
        )
    time_ratio = found["ours"][0] / found["bare"][0]
    memory_ratio = found["ours"][1] / found["bare"][1]
    print(f"ours against bare: {time_ratio:.2f} of the time, {memory_ratio:.2f} of the memory")
    if search:
        print(f"search against bare: {found['search'][1] / found['bare'][1]:.2f} of the memory")
    return time_ratio <= 1.1 and memory_ratio <= 1.5


def fit(kind: str, rows: int) -> int:
    """One fit in a process of its own: prints seconds, memory before, peak, and what came out."""
    from sklearn.linear_model import LogisticRegression  # noqa: TID251 - the comparison
    from threadpoolctl import threadpool_limits

    from apps.classifiers import trainer

    vectors, codes = clouds(rows)
    before = memory()
    begun = time.perf_counter()
    if kind == "bare":
        with threadpool_limits(1):
            model = LogisticRegression(C=10, max_iter=1000).fit(vectors, codes)
        extra = f"accuracy {model.score(vectors[:20_000], codes[:20_000]):.4f}"
    elif kind == "ours":
        ours = trainer.fit_once(vectors, codes, LABELS, C=10)
        right = ours.logits(vectors[:20_000]).argmax(axis=1) == codes[:20_000]
        extra = f"accuracy {right.mean():.4f}"
    else:
        found = trainer.fit(vectors, codes, np.arange(rows))
        extra = f"C {found.C:g}, {len(found.path) * trainer.FOLDS + 1} fits"
    print(time.perf_counter() - begun, before, memory(), extra)
    return 0


def clouds(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around 77 centres, about as separable as Banking77 (93 %)."""
    from apps.embeddings import arrays

    random = np.random.default_rng(0)
    centres = random.normal(size=(LABELS, DIMENSIONS)).astype(np.float32)
    codes = random.integers(0, LABELS, rows)
    vectors = arrays.empty((rows, DIMENSIONS))
    for start in range(0, rows, 10_000):
        part = codes[start : start + 10_000]
        points = centres[part] + random.normal(0, 5.5, (len(part), DIMENSIONS)).astype(np.float32)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        vectors[start : start + 10_000] = points
    return vectors, codes


def memory() -> float:
    """Peak of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
