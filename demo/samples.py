"""Asks the demo model 40 things it was never trained on and writes the answers into SAMPLES.md.

    python samples.py            needs workbench-demo.gguf
    python samples.py --check    also looks for the prompts in 100,000 conversations of the corpus

The real llama.cpp server answers, over HTTP, as it does in the app. What a person wrote above the
mark in SAMPLES.md stays.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from corpus import CODER, DATA, HELPFUL, SHORT, TEACHER, conversations
from server import llama_server, post

HERE = Path(__file__).parent
MARK = "<!-- From here on written by samples.py. -->"
SETTINGS: dict[str, Any] = {"temperature": 0.4, "min_p": 0.05, "max_tokens": 300}

MOODS = ["positive", "negative"]
ROW: dict[str, Any] = {"text": str, "label": MOODS}
TICKET: dict[str, Any] = {"subject": str, "body": str, "priority": ["low", "medium", "high"]}

# (system prompt, turns of the user, fields of a JSON object if any)
PROMPTS: list[tuple[str, list[str], dict[str, Any] | None]] = [
    # Small talk
    (HELPFUL, ["Hello you little machine, how are we doing this morning?"], None),
    ("", ["Well hello there, nice to meet you!"], None),
    (HELPFUL, ["Grüezi! Wie geht es dir heute?"], None),
    (HELPFUL, ["I feel rather gloomy this afternoon."], None),
    ("", ["Thanks a bunch, that cleared it up for me."], None),
    (HELPFUL, ["Got any good jokes about computers?"], None),
    # The workbench
    (
        HELPFUL,
        ["I have llama-server running on my desktop. How do I tell the workbench about it?"],
        None,
    ),
    (SHORT, ["What exactly counts as a slot in this program?"], None),
    (HELPFUL, ["If I close my laptop while you are answering, is the answer lost?"], None),
    ("", ["my classifier mixes up complaints and refunds, any advice?"], None),
    (HELPFUL, ["Which numbers tell me whether the prompt cache did its work?"], None),
    (TEACHER, ["How do I turn a spreadsheet of labelled emails into a classifier?"], None),
    (CODER, ["My script has to call the classifier. How does it authenticate?"], None),
    (SHORT, ["Is macro F1 better than plain accuracy when one class is rare?"], None),
    (HELPFUL, ["The start command complains that something already listens on the port."], None),
    (HELPFUL, ["Do my confidential customer emails get uploaded anywhere?"], None),
    # Reviews of things it never saw
    (HELPFUL, ["Write a negative review of a blender."], None),
    (HELPFUL, ["Write a positive review of a pram."], None),
    ("", ["a short negative review of a trombone please"], None),
    (DATA, ["Write a neutral review of a folding bike."], None),
    (HELPFUL, ["Write a long positive review of a telescope."], None),
    (HELPFUL, ["I need an angry review of a noodle bar that mentions the price."], None),
    (HELPFUL, ["Write two positive reviews of a hoodie."], None),
    # Tickets, intents, labelled texts
    (HELPFUL, ["Write a customer message with the intent renew_passport."], None),
    (DATA, ["Write a message from a customer who wants to report a lost library card."], None),
    ("", ["Write an urgent support ticket about the printer on the second floor."], None),
    (HELPFUL, ["A customer wants to close a profile. Write the reply."], None),
    (DATA, ["Write a spam text message about a free boat."], None),
    # JSON, in words and with a schema
    (
        HELPFUL,
        ["Write a negative review of a potato peeler as JSON with the keys text and label."],
        None,
    ),
    (
        "",
        ["Write a message with the intent broken_scanner. Return JSON with intent and text."],
        None,
    ),
    (DATA, ["Write a positive review of a climbing rope."], ROW),
    (
        DATA,
        ["Write a negative review of a ukulele."],
        {"product": str, "rating": int, "review": str},
    ),
    (
        DATA,
        ["Write a customer message with the intent praise_delivery."],
        {"message": str, "intent": ["praise_delivery", "refund_repair", "lost_contract"]},
    ),
    (DATA, ["Write an urgent support ticket about stolen passwords."], TICKET),
    # Longer talks
    (
        HELPFUL,
        ["Hey, I'm Wilhelmina.", "How do I stop an answer halfway?", "And what is my name?"],
        None,
    ),
    (
        HELPFUL,
        [
            "Write a positive review of a comic book.",
            "Now the opposite: negative.",
            "As JSON, please.",
        ],
        None,
    ),
    # Out of its reach
    (HELPFUL, ["Which city is the seat of government of Bolivia?"], None),
    (HELPFUL, ["What is 38 times 4?"], None),
    (CODER, ["Write a Python function that removes duplicates from a list."], None),
    (HELPFUL, ["Compose a ballad about an old fisherman."], None),
]


def appendix(fields: dict[str, Any]) -> str:
    """The lines the app adds to the system prompt of a generation job."""
    kinds = {str: "string", int: "integer"}
    lines = [
        f"- {name}: "
        + (kinds[kind] if isinstance(kind, type) else "one of " + ", ".join(f'"{k}"' for k in kind))
        for name, kind in fields.items()
    ]
    return "Answer with one JSON object with these fields:\n" + "\n".join(lines)


def schema(fields: dict[str, Any]) -> dict[str, Any]:
    names = {str: "string", int: "integer"}
    types = {
        name: {"type": names[kind]} if isinstance(kind, type) else {"type": "string", "enum": kind}
        for name, kind in fields.items()
    }
    return {
        "type": "object",
        "properties": types,
        "required": list(fields),
        "additionalProperties": False,
    }


def ask(
    address: str,
    system: str,
    turns: list[str],
    fields: dict[str, Any] | None,
    seed: int,
    settings: dict[str, Any],
) -> list[str]:
    """Every turn in order; the answers, with a mark where one did not end by itself."""
    extra: dict[str, Any] = {}
    if fields:
        system = f"{system}\n\n{appendix(fields)}"
        form = {"name": "row", "schema": schema(fields)}
        extra["response_format"] = {"type": "json_schema", "json_schema": form}
    messages = [{"role": "system", "content": system}] if system else []
    answers = []
    for turn in turns:
        messages.append({"role": "user", "content": turn})
        body = {"messages": messages, "seed": seed, **settings, **extra}
        choice = post(address, "/v1/chat/completions", body)["choices"][0]
        text = choice["message"]["content"]
        messages.append({"role": "assistant", "content": text})
        answers.append(text if choice["finish_reason"] == "stop" else f"{text} [cut at max_tokens]")
    return answers


def write(path: Path, results: list[tuple[int, list[str]]], settings: dict[str, Any]) -> None:
    head = path.read_text(encoding="utf-8").split(MARK)[0] if path.exists() else "# Samples\n\n"
    lines = [
        MARK,
        "",
        f"Settings: `{json.dumps(settings)}`; the seed is the number of the prompt. One try each.",
        "",
    ]
    for (number, answers), (system, turns, fields) in zip(results, PROMPTS, strict=True):
        lines += [f"## {number}", ""]
        lines += [
            f"System: {system or '(none)'}" + (" Fields: " + ", ".join(fields) if fields else ""),
            "",
        ]
        for turn, answer in zip(turns, answers, strict=True):
            quoted = "\n".join(f"> {line}" for line in answer.splitlines())
            lines += [f"**{turn}**", "", quoted, ""]
    path.write_text(head + "\n".join(lines), encoding="utf-8")


def seen_before(count: int) -> list[str]:
    prompts = {turn.lower().rstrip(".?!") for _, turns, _ in PROMPTS for turn in turns[:1]}
    found = set()
    for talk in islice(conversations(12345), count):
        found |= prompts & {m["content"].lower().rstrip(".?!") for m in talk if m["role"] == "user"}
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gguf", type=Path, default=HERE / "workbench-demo.gguf")
    parser.add_argument("--out", type=Path, default=HERE / "SAMPLES.md")
    parser.add_argument("--temperature", type=float, default=SETTINGS["temperature"])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.check and (found := seen_before(100_000)):
        sys.exit(f"not unseen: {found}")
    settings = SETTINGS | {"temperature": args.temperature}
    begin = time.monotonic()
    with llama_server(args.gguf) as address:
        results = [(i, ask(address, *prompt, i, settings)) for i, prompt in enumerate(PROMPTS, 1)]
    write(args.out, results, settings)
    print(f"{len(results)} prompts in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
