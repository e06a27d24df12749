"""Makes workbench-demo.gguf from nothing: text, vocabulary, training, export.

python train.py                 about 50 minutes on two CPU cores
python train.py --minutes 5     a rough one
python train.py --resume        goes on from the last checkpoint of an interrupted run
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

# Beside other work, threads that spin at every barrier cost three times the CPU.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import torch.nn.functional as F
from corpus import conversations
from export import export
from model import Llama, Muon, Shape
from tokenizer import END, answer_mask, render, train_tokenizer
from tokenizers import Tokenizer
from torch import Tensor

HERE = Path(__file__).parent
BUILD = HERE / "build"
WARMUP, DECAY = 0.02, 0.55  # shares of the time: up, level until DECAY, then down to nothing


EMBED_RATE = 0.05  # of embeddings that start at a scale of 8


class Progress:
    """How far the run is, by the clock: a slower machine sees less text but still finishes."""

    def __init__(self, minutes: float, spent: float = 0.0) -> None:
        self.begin, self.seconds = time.monotonic() - spent, minutes * 60

    @property
    def spent(self) -> float:
        return time.monotonic() - self.begin

    @property
    def share(self) -> float:
        return self.spent / self.seconds

    @property
    def rate(self) -> float:
        share = self.share
        if share < WARMUP:
            return share / WARMUP
        return 1.0 if share < DECAY else max(0.0, 1 - (share - DECAY) / (1 - DECAY))


def batches(
    tokenizer: Tokenizer, size: int, seed: int, progress: Progress
) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of one conversation each, conversations of like length together, so that little is
    padding and every one begins at position 0 as it does on the server."""
    rng = random.Random(seed)
    end = tokenizer.token_to_id(END)
    while True:
        # Long conversations cost the most; the last part of the run sees more of them.
        source = conversations(rng.randrange(2**32), 0.05 if progress.share > 0.7 else 0.015)
        talks = [next(source) for _ in range(3000)]
        rows = [
            e.ids[: Shape.context + 1] for e in tokenizer.encode_batch([render(t) for t in talks])
        ]
        rows.sort(key=len)
        groups: list[list[list[int]]] = []
        for row in rows:
            if groups and (len(groups[-1]) + 1) * len(row) <= size:
                groups[-1].append(row)
            else:
                groups.append([row])
        rng.shuffle(groups)
        for group in groups:
            longest = max(map(len, group))
            ids = torch.full((len(group), longest), end)
            mask = torch.zeros(len(group), longest, dtype=torch.bool)
            for i, row in enumerate(group):
                ids[i, : len(row)] = torch.tensor(row)
                mask[i, : len(row)] = torch.tensor(answer_mask(row, tokenizer))
            yield ids, mask


def loss_of(model: Llama, ids: Tensor, mask: Tensor) -> Tensor:
    """Cross-entropy on the assistant's tokens only; no logits are computed for the others."""
    wanted = mask[:, 1:]
    return F.cross_entropy(model(ids[:, :-1], wanted), ids[:, 1:][wanted])


def make_tokenizer(seed: int) -> Tokenizer:
    source = conversations(seed)
    tokenizer = train_tokenizer((render(next(source)) for _ in range(25_000)), Shape.vocab)
    tokenizer.save(str(BUILD / "tokenizer.json"))
    return tokenizer


def train(minutes: float, size: int, seed: int, target: Path, resume: bool) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(2)
    BUILD.mkdir(exist_ok=True)
    checkpoint = BUILD / "checkpoint.pt"
    old = torch.load(checkpoint) if resume else None
    tokenizer = (
        Tokenizer.from_file(str(BUILD / "tokenizer.json")) if resume else make_tokenizer(seed)
    )

    model = Llama(Shape())
    count = sum(p.numel() for p in model.parameters())
    print(f"{count:,} parameters", flush=True)
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    others = [model.out.weight, *(p for p in model.parameters() if p.ndim == 1)]
    adam = [{"params": others, "lr": 4e-3}, {"params": [model.embed.weight], "lr": EMBED_RATE}]
    optimizers = [
        Muon(matrices, lr=0.02),
        torch.optim.AdamW(adam, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    peaks = [[group["lr"] for group in o.param_groups] for o in optimizers]

    seen, average, step, spent = 0, 0.0, 0, 0.0
    if old:
        model.load_state_dict(old["model"])
        for optimizer, state in zip(optimizers, old["optimizers"], strict=True):
            if state:
                optimizer.load_state_dict(state)
        seen, average, step, spent = old["seen"], old["average"], old["step"], old["spent"]
    held_out = list(islice(batches(tokenizer, size, seed + 1, Progress(1e9)), 20))
    progress = Progress(minutes, spent)
    saved = progress.spent
    for ids, mask in batches(tokenizer, size, seed + 2 + step, progress):
        if progress.share >= 1:
            break
        for optimizer, rates in zip(optimizers, peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = peak * progress.rate
        loss = loss_of(model, ids, mask)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        step, seen = step + 1, seen + ids.numel()
        average = loss.item() if step == 1 else 0.98 * average + 0.02 * loss.item()
        if step % 25 == 0:
            print(
                f"{progress.share:5.1%}  step {step}  {seen / 1e6:.2f} M tokens  "
                f"{seen / progress.spent:.0f}/s  loss {average:.3f}",
                flush=True,
            )
        if progress.spent - saved > 180:  # an unfinished run leaves something usable
            saved = progress.spent
            states = [o.state_dict() for o in optimizers]
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizers": states,
                    "seen": seen,
                    "step": step,
                    "average": average,
                    "spent": progress.spent,
                },
                checkpoint,
            )
            export(model, tokenizer, BUILD / "checkpoint.gguf")
    with torch.no_grad():
        losses = [loss_of(model, ids, mask).item() for ids, mask in held_out]
    print(
        f"{step} steps, {seen:,} tokens, {progress.spent / 60:.1f} minutes, "
        f"loss on unseen conversations {sum(losses) / len(losses):.3f}",
        flush=True,
    )
    torch.save(model.state_dict(), BUILD / "final.pt")
    export(model, tokenizer, target)
    print(f"{target.name}: {target.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=50)
    parser.add_argument("--batch", type=int, default=3072, help="tokens per step")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "workbench-demo.gguf")
    args = parser.parse_args()
    train(args.minutes, args.batch, args.seed, args.out, args.resume)


if __name__ == "__main__":
    main()
