"""Checks that llama.cpp reads the GGUF as PyTorch trained it: same tokens, same greedy answers."""

from __future__ import annotations

import argparse
import os
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from corpus import conversations
from model import Llama, Shape
from server import llama_server, post
from tokenizer import END, render
from tokenizers import Tokenizer

HERE = Path(__file__).parent
ODD = [
    "Hello world",
    "  two  spaces\n\nand lines\n",
    "It's 12:30, isn't it? We'll see 1234567 things.",
    "Größe, façade, naïve, Привет, 你好, 🙂🙂",
    '{"text": "a \\"quoted\\" word", "n": 3.5}',
    "\ttab\r\nend",
    "don't I'VE they'll",
    "a_b-c d/e (f) [g] <h> #i @j $5 100%",
    "x" * 50,
    "LLM_BASE_URL=http://localhost:8080/v1",
]


def greedy(model: Llama, tokenizer: Tokenizer, prompt: str, most: int) -> str:
    ids = tokenizer.encode(prompt).ids
    begin = len(ids)
    for _ in range(most):
        last = torch.zeros(1, len(ids), dtype=torch.bool)
        last[0, -1] = True
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids]), last).argmax()))
        if ids[-1] == tokenizer.token_to_id(END):
            return tokenizer.decode(ids[begin:-1])
    return tokenizer.decode(ids[begin:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=HERE / "build" / "final.pt")
    parser.add_argument("--gguf", type=Path, default=HERE / "workbench-demo.gguf")
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(HERE / "build" / "tokenizer.json"))
    torch.set_num_threads(1)
    model = Llama(Shape())
    state = torch.load(args.weights)
    model.load_state_dict(state.get("model", state))
    talks = list(islice(conversations(99), 12))
    with llama_server(args.gguf) as address:
        texts = ODD + [render(t) for t in talks]
        same = sum(
            post(address, "/tokenize", {"content": t, "parse_special": True})["tokens"]
            == tokenizer.encode(t).ids
            for t in texts
        )
        print(f"tokenization: {same} of {len(texts)} texts agree")
        agree = 0
        for talk in talks:
            until = next(i for i, m in enumerate(talk) if m["role"] == "assistant")
            prompt = render(talk[:until], prompt=True)
            ask = {"messages": talk[:until], "temperature": 0, "max_tokens": 40}
            reply = post(address, "/v1/chat/completions", ask)["choices"][0]["message"]["content"]
            ours = greedy(model, tokenizer, prompt, 40)
            agree += reply == ours
            if reply != ours:
                print(f"  PyTorch:   {ours}\n  llama.cpp: {reply}")
        print(f"greedy answers: {agree} of {len(talks)} agree (float16 against float32)")


if __name__ == "__main__":
    main()
