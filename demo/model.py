"""The network: a small llama (RMSNorm, interleaved rotary positions, SwiGLU)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    vocab: int = 4096
    width: int = 160
    layers: int = 6
    heads: int = 5
    hidden: int = 448
    context: int = 2048
    rope_base: float = 10_000.0
    eps: float = 1e-5


class Block(nn.Module):
    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.heads = s.heads
        self.attn_norm = nn.RMSNorm(s.width, eps=s.eps)
        self.ffn_norm = nn.RMSNorm(s.width, eps=s.eps)
        self.q = nn.Linear(s.width, s.width, bias=False)
        self.k = nn.Linear(s.width, s.width, bias=False)
        self.v = nn.Linear(s.width, s.width, bias=False)
        self.o = nn.Linear(s.width, s.width, bias=False)
        self.gate = nn.Linear(s.width, s.hidden, bias=False)
        self.up = nn.Linear(s.width, s.hidden, bias=False)
        self.down = nn.Linear(s.hidden, s.width, bias=False)

    def forward(self, x: Tensor, turn: Tensor, wanted: Tensor | None = None) -> Tensor:
        """With `wanted`, only these positions come out: all that the last block has to do."""
        b, t, d = x.shape
        h = self.attn_norm(x)
        q, k, v = (m(h).view(b, t, self.heads, d // self.heads) for m in (self.q, self.k, self.v))
        q, k = rotate(q, turn), rotate(k, turn)
        a = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        a = a.transpose(1, 2).reshape(b, t, d)
        if wanted is not None:
            x, a = x[wanted], a[wanted]
        x = x + self.o(a)
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turns neighbouring pairs, as llama.cpp does: so no weight has to be permuted on export."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn[:, None]).flatten(3)


class Llama(nn.Module):
    turns: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=shape.eps)
        self.out = nn.Linear(shape.width, shape.vocab, bias=False)
        half = shape.width // shape.heads // 2
        speed = shape.rope_base ** (-torch.arange(half).float() / half)
        angle = torch.outer(torch.arange(shape.context).float(), speed)
        self.register_buffer("turns", torch.polar(torch.ones_like(angle), angle), persistent=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)
            if name.endswith(("o.weight", "down.weight")):
                nn.init.normal_(p, std=0.02 / (2 * shape.layers) ** 0.5)
        # The blocks soon add values around 20. A token must stay loud beside them: with small (or
        # tied) embeddings the network did not learn to copy a product's name from the request.
        nn.init.normal_(self.embed.weight, std=8.0)

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        """Logits of the next token, at the wanted positions only."""
        x, turns = self.embed(ids), self.turns[: ids.shape[1]]
        *first, last = self.blocks
        for block in first:
            x = block(x, turns)
        return self.out(self.norm(last(x, turns, wanted)))


class Muon(torch.optim.Optimizer):
    """Momentum whose step is made orthogonal, for the matrices of the blocks: it needs about half
    the tokens that AdamW needs here. In 32 bits, because this is meant for any CPU."""

    def __init__(self, params: list[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": 0.95, "decay": 0.01})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for p in group["params"]:
                by_shape.setdefault(p.shape, []).append(p)
            for shape, ps in by_shape.items():
                steps = []
                for p in ps:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    m.lerp_(p.grad, 1 - group["momentum"])
                    steps.append(p.grad.lerp(m, group["momentum"]))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for p, s in zip(ps, orthogonal(torch.stack(steps)), strict=True):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(s, alpha=-group["lr"] * scale)


def orthogonal(g: Tensor) -> Tensor:
    """Newton-Schulz iteration towards the nearest orthogonal matrix (batched)."""
    tall = g.shape[1] > g.shape[2]
    x = g.transpose(1, 2) if tall else g
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.transpose(1, 2) if tall else x
