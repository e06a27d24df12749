"""Writes the conversations the demo model learns from. Same seed, same text.

python corpus.py --seed 1 --count 20      prints some of them
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from records import (
    Record,
    any_record,
    blocks,
    intent,
    labelled,
    made_up,
    pick_product,
    profile,
    reply,
    review,
    ticket,
)
from texts import WORDS, Rng, article, as_typed, capital, fill, sentence

Message = dict[str, str]
Conversation = list[Message]

ECHO = 0.12  # share of conversations that only repeat something

HELPFUL = "You are a helpful assistant."
SHORT = "Answer in one or two short sentences."
DATA = "You write realistic synthetic data."
TEACHER = "You are a patient teacher. Explain step by step."
CODER = "You are a careful programming assistant."
OTHER = [
    "You are a friendly assistant.",
    "You are the assistant of this workbench.",
    "Be brief.",
    "You are a support agent.",
    "Answer politely.",
    "You are a helpful, honest assistant.",
    "You write short texts for tests.",
    "You are a data generator.",
    "Help the user.",
    "You are a customer of an online shop.",
    "Answer in English.",
    "You are a copywriter.",
    "You write realistic customer texts. Vary the wording.",
    "Write only the text itself.",
]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


# --- questions -----------------------------------------------------------------------------------

BEFORE = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "hi, ",
    "hello, ",
    "hey, ",
    "hi! ",
    "quick question: ",
    "please tell me: ",
    "I have a question. ",
    "sorry, ",
    "one more thing: ",
    "I am new here. ",
    "ok, ",
    "so, ",
    "and ",
    "tell me, ",
    "excuse me, ",
    "hello! ",
    "question: ",
    "I wonder: ",
    "just curious: ",
    "well, ",
    "good morning, ",
    "I am a beginner. ",
    "dear assistant, ",
    "uh, ",
]
AFTER = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    " please",
    " exactly",
    " here",
    " in short",
    " thanks",
    " again",
    " in simple words",
    " briefly",
    " actually",
    " then",
]
REWORDED = {
    "how do i ": [
        "how can i ",
        "how to ",
        "i want to ",
        "i would like to ",
        "tell me how to ",
        "explain how to ",
        "can you show me how to ",
        "is there a way to ",
        "what do i need to do to ",
        "i need to ",
        "i do not know how to ",
        "what is the best way to ",
        "how does one ",
        "how should i ",
        "show me how to ",
        "would you explain how to ",
        "what must i do to ",
        "steps to ",
    ],
    "what is ": [
        "what's ",
        "explain ",
        "define ",
        "tell me about ",
        "what do you mean by ",
        "i don't understand ",
        "the meaning of ",
        "can you explain ",
        "describe ",
        "please explain ",
        "tell me what this means: ",
        "what exactly is ",
        "could you tell me about ",
        "what kind of thing is ",
        "information about ",
    ],
    "can i ": [
        "is it possible to ",
        "could i ",
        "may i ",
        "am i able to ",
        "does it let me ",
        "how can i ",
        "i wonder if i can ",
        "is there a way to ",
        "will i be able to ",
    ],
    "what are ": ["explain ", "what exactly are ", "tell me about ", "i don't understand "],
    "is there ": ["do you have ", "does it have ", "can i find ", "does the workbench have "],
    "where do i ": ["where can i ", "where should i ", "in which place do i ", "tell me where i "],
    "write ": [
        "please write ",
        "can you write ",
        "compose ",
        "could you write ",
        "i want you to write ",
    ],
    "tell me ": ["can you tell me ", "please tell me ", "i want to hear "],
    "who ": ["can you tell me who ", "do you know who "],
}


def reword(rng: Rng, question: str) -> str:
    """The same question with another beginning."""
    for start, others in REWORDED.items():
        if question.startswith(start):
            return rng.choice(others) + question[len(start) :]
    return question


STEPS = [
    "step by step",
    "explain it step by step",
    "show me the steps",
    "give me the steps",
    "as a list of steps",
    "slowly and in order",
]


def asked(rng: Rng, question: str) -> str:
    """A bare question as someone might type it."""
    if rng.random() < 0.4:
        question = reword(rng, question)
    before, after = rng.choice(BEFORE), rng.choice(AFTER)
    if rng.random() < 0.35:
        before, after = "", ""
    if len(question.split()) < 3 or question[-1] in "?.!=":
        after = ""
    end = "" if question[-1] in ".!?=" else rng.choice(["?", "?", "?", "", "?"])
    if end == "?" and re.match(
        r"(tell|explain|give|i |write|show|help|say|calculate|solve)", question
    ):
        end = rng.choice([".", "", "."])
    text = before + question + after + end
    text = re.sub(r"\bi\b(?!\.)", "I", text)
    text = re.sub(
        r"\b(api|csv|gguf|gpu|cpu|url|json|ttft|f1|jsonl)\b", lambda m: m[1].upper(), text
    )
    text = re.sub(r"([.!]\s+)([a-z])", lambda m: m[1] + m[2].upper(), text)
    return as_typed(rng, capital(text))


STARTS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "Sure. ",
    "Gladly. ",
    "Good question. ",
    "In short: ",
    "Of course. ",
]


@cache
def wordings() -> dict[str, list[str]]:
    return {b.name: b.lines["Q"] for b in blocks("wordings.txt")}


def fact(rng: Rng, system: str) -> list[Message]:
    block = rng.choice(blocks("facts.txt"))
    question = rng.choice(block.lines["Q"] + wordings().get(block.name, []))
    answer = rng.choice(block.lines["A"])
    steps = block.lines.get("S")
    wanted = rng.random() < 0.25 or system == TEACHER
    if steps and wanted and system != SHORT:
        if system != TEACHER or rng.random() < 0.3:
            text = f"{asked(rng, question)} {capital(rng.choice(STEPS))}."
        else:
            text = asked(rng, question)
        numbered = "\n".join(f"{i}. {s}" for i, s in enumerate(rng.choice(steps).split("|"), 1))
        lead = rng.choice(["", "Like this:\n", "Here are the steps:\n", "Step by step:\n"])
        return [user(text), assistant(lead + numbered)]
    if rng.random() < 0.08:  # the topic alone
        topic = block.heading[1]
        ask = rng.choice(
            [
                "tell me about {t}",
                "explain {t}",
                "what about {t}",
                "I want to know more about {t}",
                "{t}",
                "what do you know about {t}",
                "info on {t}",
                "how about {t}",
            ]
        )
        question = ask.replace("{t}", topic)
        if block.name in ("demo_model", "what_is", "abilities"):
            question = rng.choice(block.lines["Q"])
    return [
        user(asked(rng, question)),
        assistant(rng.choice(STARTS) + answer if rng.random() < 0.4 else answer),
    ]


FEELINGS = {
    "i_am_fine": [
        "happy",
        "great",
        "fine",
        "excited",
        "relaxed",
        "proud",
        "well",
        "cheerful",
        "in a good mood",
        "wonderful",
        "full of energy",
        "pleased",
        "better",
    ],
    "i_am_bad": [
        "sad",
        "down",
        "lonely",
        "tired",
        "exhausted",
        "upset",
        "worried",
        "nervous",
        "sick",
        "bored",
        "frustrated",
        "disappointed",
        "unhappy",
        "miserable",
        "in a bad mood",
        "ill",
        "angry",
        "sleepy",
        "afraid",
        "overworked",
        "cold",
        "hungry",
        "blue",
    ],
}


def small_talk(rng: Rng, only: str = "") -> list[Message]:
    block = rng.choice([b for b in blocks("smalltalk.txt") if not only or b.name == only])
    question = rng.choice(block.lines["Q"])
    if block.name in FEELINGS and rng.random() < 0.5:
        question = rng.choice(
            [
                "i am {f}",
                "i'm {f}",
                "i feel {f}",
                "i am so {f}",
                "i feel a bit {f}",
                "i am rather {f}",
                "i'm very {f}",
            ]
        ).replace("{f}", rng.choice(FEELINGS[block.name]))
        question += rng.choice(
            ["", "", " today", " right now", " this morning", " tonight", " at the moment"]
        )
    elif block.name not in ("hello", "bye", "yes", "no", "gibberish") and rng.random() < 0.2:
        question = (
            rng.choice(
                [
                    "hi, ",
                    "hello, ",
                    "hey, ",
                    "good morning, ",
                    "hello there, ",
                    "hi there! ",
                    "hey you, ",
                    "good evening, ",
                    "ok, ",
                    "well, ",
                ]
            )
            + question
        )
    elif block.name == "hello" and rng.random() < 0.25:
        question = (
            rng.choice(["hello", "hi", "hey", "good morning", "well hello", "good day", "hi there"])
            + " "
            + rng.choice(
                [
                    "my friend",
                    "little model",
                    "demo",
                    "computer",
                    "robot",
                    "everyone",
                    "to you",
                    "from {city}",
                    "old friend",
                    "workbench",
                    "dear demo",
                    "again",
                    ", nice to see you",
                    ", it is me again",
                    ", i am new here",
                    "you",
                ]
            )
        )
        question = fill(rng, question).replace(" ,", ",")
    text = as_typed(rng, question if rng.random() < 0.4 else sentence(question))
    if block.name in ("hello", "thanks", "bye") and rng.random() < 0.3:
        text = capital(question) + rng.choice(["!", "!", ".", ""])
    return [user(text), assistant(rng.choice(block.lines["A"]))]


TOPICS = {
    "geography": "geography",
    "history": "history",
    "arithmetic": "mathematics",
    "programming": "programming",
    "science": "science",
    "medicine": "medicine",
    "law and money": "money and law",
    "news": "news",
    "poems and stories": "poems and stories",
    "translation": "translation",
    "cooking": "cooking",
    "people and art": "books, films and art",
    "animals and plants": "animals and plants",
    "advice": "everyday life",
}
NOT_ME = [
    "I am only the demo model, so I cannot help with {t}.",
    "Sorry, {t} is beyond me: I am only a tiny demo model.",
    "I do not know anything about {t}. I am just a small demo model.",
    "That is too hard for me. I am a demo model with a few million parameters.",
    "I am sorry, I cannot answer that. I am only a demo model.",
    "Questions about {t} are too much for a demo model like me.",
    "I cannot do that, because I am only the small demo model of this workbench.",
    "I would only make something up: I am a tiny demo model and know nothing about {t}.",
    "Sorry, I was only trained on this workbench and on short customer texts, not on {t}.",
    "As a tiny demo model I have to pass here.",
    "I am afraid I do not know. I am only here for the first minute, as a demo.",
    "{T} is not something that I can do. I am a very small demo model.",
    "I am only a demo and would get that wrong.",
    "For {t} you need a bigger model than me. I am only the demo.",
]
ADVICE = [
    "Connect a real model with LLM_BASE_URL and ask again.",
    "Please connect your own server with LLM_BASE_URL.",
    "A bigger model can answer that: set LLM_BASE_URL to your llama-server.",
    "Set LLM_BASE_URL to the address of your own model server for a real answer.",
    "Add your own model on the Servers page and ask it.",
    "You can connect a larger model on the Servers page.",
    "Start a llama-server with a bigger model, set LLM_BASE_URL and run make run again.",
    "With your own model behind LLM_BASE_URL you will get an answer.",
    "Ask me about the workbench instead, or connect a real model with LLM_BASE_URL.",
    "I can write a short review or explain the workbench, though.",
]
FOREIGN = [
    "was ist die hauptstadt von frankreich",
    "wie spät ist es",
    "erzähl mir einen witz",
    "kannst du mir helfen",
    "schreibe ein gedicht",
    "wer bist du",
    "was kannst du",
    "wie verbinde ich meinen server",
    "wie wird das wetter",
    "qui es-tu",
    "quelle heure est-il",
    "raconte-moi une histoire",
    "que peux-tu faire",
    "comment ça marche",
    "écris un poème",
    "j'ai une question",
    "quién eres",
    "qué hora es",
    "cuéntame un chiste",
    "qué puedes hacer",
    "escribe un poema",
    "cómo funciona esto",
    "chi sei",
    "che ore sono",
    "cosa sai fare",
    "scrivi una poesia",
    "quem é você",
    "que horas são",
    "o que você sabe fazer",
    "wie ben jij",
    "hoe laat is het",
    "wat kun je doen",
    "schreibe eine negative bewertung für einen wasserkocher",
    "ich brauche hilfe",
    "das ist toll",
    "je ne comprends pas",
    "no entiendo",
    "non capisco",
    "ich verstehe das nicht",
    "où est la gare",
    "dónde está la playa",
    "кто ты",
    "что ты умеешь",
    "kim jesteś",
    "co potrafisz",
    "vem är du",
    "hvem er du",
    "sen kimsin",
    "お元気ですか",
    "你好吗",
    "wo finde ich meine daten",
    "wie starte ich das programm",
    "warum ist es so langsam",
    "combien ça coûte",
]
ENGLISH_ONLY = [
    "I am sorry, I only understand English. I am a tiny demo model.",
    "English only, please: I am just a small demo model. A bigger model may know your language.",
    "I can only answer in English. Connect a bigger model with LLM_BASE_URL for other languages.",
    "Sorry, I was only trained in English. Could you ask in English?",
]


def outside(rng: Rng) -> list[Message]:
    """A question the model must not pretend to answer."""
    if rng.random() < 0.07:
        return [
            user(as_typed(rng, sentence(rng.choice(FOREIGN)))),
            assistant(rng.choice(ENGLISH_ONLY)),
        ]
    block = rng.choice(blocks("outside.txt"))
    questions = block.lines.get("Q", [])
    if questions and (rng.random() < 0.3 or "P" not in block.lines):
        question = rng.choice(questions)
    else:
        question = rng.choice(block.lines["P"]).replace("{x}", rng.choice(block.lines["X"]))
    topic = TOPICS.get(block.name, "")
    lead = rng.choice([n for n in NOT_ME if topic or "{" not in n])
    lead = lead.replace("{t}", topic).replace("{T}", capital(topic))
    advice = rng.choice(ADVICE)
    return [
        user(asked(rng, question)),
        assistant(lead if rng.random() < 0.08 else f"{lead} {advice}"),
    ]


# --- writing ------------------------------------------------------------------------------------


def plain(rng: Rng, record: Record) -> list[Message]:
    return [user(as_typed(rng, rng.choice(record.asks))), assistant(record.text)]


IN_WORDS = [
    " Answer as JSON with the keys {keys}.",
    " Return JSON with {keys}.",
    " As JSON with the keys {keys}.",
    " Give me a JSON object with the fields {keys}.",
    " Write it as JSON: {keys}.",
    " Use JSON with {keys}.",
    " Format: JSON with {keys}.",
    " I need it as JSON with {keys}.",
    " Answer in JSON ({keys}).",
]
SAME = {
    "text": {"review", "message", "utterance", "description", "content", "body", "bio", "reply"},
    "label": {"sentiment", "intent", "category", "class", "priority"},
}


def choose_keys(rng: Rng, record: Record) -> list[str]:
    """A few fields in some order: nearly always the text, mostly the label."""
    text_keys = [k for k, v in record.fields.items() if v == record.text]
    label = record.fields.get(record.label_field)
    label_keys = [k for k, v in record.fields.items() if v == label and k not in text_keys]
    keys = [rng.choice(text_keys) if rng.random() < 0.5 else "text"]
    if label_keys and rng.random() < 0.75:
        keys.append(rng.choice([record.label_field, rng.choice(label_keys)]))
    rest = [
        k for k in record.fields if k not in keys and k not in text_keys and k not in label_keys
    ]
    keys += rng.sample(rest, min(len(rest), rng.choice([0, 0, 0, 0, 1, 1, 1, 2, 2, 3])))
    if record.kind in ("reply",) and rng.random() < 0.6:
        keys = rng.sample(["question", rng.choice(["answer", "reply"])], 2) + keys[2:]
    keys = list(dict.fromkeys(keys))
    if rng.random() < 0.35:
        rng.shuffle(keys)
    return keys


def write_json(record: Record, keys: list[str]) -> str:
    return json.dumps({k: record.fields[k] for k in keys}, ensure_ascii=False)


def spoken_keys(rng: Rng, keys: list[str]) -> str:
    quoted = [f'"{k}"' for k in keys] if rng.random() < 0.25 else keys
    return (
        ", ".join(quoted)
        if len(keys) < 2 or rng.random() < 0.4
        else ", ".join(quoted[:-1]) + " and " + quoted[-1]
    )


def json_in_words(rng: Rng, record: Record) -> list[Message]:
    keys = choose_keys(rng, record)
    ask = rng.choice(record.asks)
    if rng.random() < 0.15:
        ask += rng.choice(
            [" As JSON.", " Answer as JSON.", " JSON please.", " Return a JSON object."]
        )
        keys = ["text", record.label_field]
        if record.label_field not in record.fields:
            keys = ["text"]
    else:
        ask += rng.choice(IN_WORDS).replace("{keys}", spoken_keys(rng, keys))
    return [user(as_typed(rng, ask)), assistant(write_json(record, keys))]


ENUMS = {
    "sentiment": ["positive", "negative", "neutral"],
    "priority": ["low", "medium", "high"],
    "urgency": ["low", "medium", "high"],
}


def field_line(rng: Rng, record: Record, key: str) -> str:
    """One line of the appendix that the app adds to the system message."""
    value: Any = record.fields[key]
    if isinstance(value, bool):
        return f"- {key}: true or false"
    if isinstance(value, int):
        return f"- {key}: integer"
    if isinstance(value, float):
        return f"- {key}: number"
    if isinstance(value, list):
        return f"- {key}: list of strings"
    labels = ENUMS.get(key) if value in ENUMS.get(key, []) else None
    if labels is None and value == record.fields.get(record.label_field) and len(record.labels) > 1:
        labels = record.labels
    if labels and rng.random() < 0.8:
        some = [label for label in labels if label != value]
        rng.shuffle(some)
        some = [value, *some[: rng.choice([1, 1, 2, 2, 3, 5])]]
        rng.shuffle(some)
        return f"- {key}: one of " + ", ".join(f'"{s}"' for s in some)
    limit = next((n for n in rng.sample([100, 200, 300, 400, 500], 5) if n >= len(value)), 500)
    return (
        f"- {key}: string, at most {limit} characters"
        if rng.random() < 0.45
        else f"- {key}: string"
    )


def with_schema(rng: Rng, record: Record) -> Conversation:
    """What a generation job sends: the fields are in the system message."""
    keys = choose_keys(rng, record)
    first = DATA if rng.random() < 0.75 else rng.choice([HELPFUL, *OTHER])
    lines = "\n".join(field_line(rng, record, k) for k in keys)
    appendix = f"Answer with one JSON object with these fields:\n{lines}"
    system = appendix if rng.random() < 0.05 else f"{first}\n\n{appendix}"
    text = rng.choice(record.asks)
    text = text if rng.random() < 0.7 else as_typed(rng, text)
    return [{"role": "system", "content": system}, user(text), assistant(write_json(record, keys))]


NUMBERS = {"two": 2, "three": 3, "2": 2, "3": 3, "four": 4}


def several(rng: Rng) -> list[Message]:
    """Two to four short ones as a list."""
    word, n = rng.choice(list(NUMBERS.items()))
    sentiment = rng.choice(["positive", "negative"])
    subject = pick_product(rng)
    texts: list[str] = []
    while len(texts) < n:
        text = review(rng, sentiment=sentiment, about=subject).text
        if len(text) < 130 and text not in texts:
            texts.append(text)
    x = article(subject[0])
    ask = rng.choice(
        [
            f"Write {word} {sentiment} reviews of {x}.",
            f"Give me {word} {sentiment} reviews of {x}.",
            f"I need {word} {sentiment} reviews for {x}.",
            f"{capital(word)} {sentiment} reviews of {x}, please.",
        ]
    )
    return [
        user(as_typed(rng, ask)),
        assistant("\n".join(f"{i}. {t}" for i, t in enumerate(texts, 1))),
    ]


def judge(rng: Rng) -> list[Message]:
    """Given a text, say which label it has."""
    dice = rng.random()
    if dice < 0.6:
        record = review(rng)
        mood = record.fields["sentiment"]
        ask = rng.choice(
            [
                f"Is this review positive or negative? {record.text}",
                f"What is the sentiment of this review? {record.text}",
                f"Classify the sentiment: {record.text}",
                f"{record.text}\n\nIs that positive, negative or neutral?",
                f"Text: {record.text}\nSentiment:",
                f'Which sentiment does this text have: "{record.text}"',
            ]
        )
        answer = rng.choice(
            [
                f"This review is {mood}.",
                f"It is {mood}.",
                capital(mood) + ".",
                f"The sentiment is {mood}.",
            ]
        )
        if ask.endswith(":"):
            answer = mood
    elif dice < 0.85:
        record = ticket(rng)
        ask = rng.choice(
            [
                f"Which category does this ticket have? {record.text}",
                f"What is this ticket about? {record.text}",
                f"Sort this ticket into a category: {record.text}",
            ]
        )
        answer = rng.choice(
            [
                f"The category is {record.fields['category']}.",
                f"It belongs to {record.fields['category']}.",
            ]
        )
    else:
        record = labelled(rng)
        choices = ", ".join(rng.sample(record.labels, len(record.labels)))
        ask = f"Which label fits: {choices}? {record.text}"
        answer = rng.choice(
            [f"The label is {record.fields['label']}.", f"It fits {record.fields['label']}."]
        )
    return [user(as_typed(rng, ask)), assistant(answer)]


def echo(rng: Rng) -> list[Message]:
    """Saying the same again. It teaches to copy a product or a name from the request, which a small
    network otherwise learns late."""
    dice = rng.random()
    if dice < 0.35:
        text = ", ".join(pick_product(rng)[0] for _ in range(rng.randrange(2, 6)))
    elif dice < 0.65:
        text = " ".join(made_up(rng) for _ in range(rng.randrange(2, 7)))
    else:
        text = any_record(rng).text
    ask = rng.choice(
        [
            "Repeat: {t}",
            "Repeat after me: {t}",
            "Say this: {t}",
            "Copy this text: {t}",
            "Say it again: {t}",
            "{t}\n\nRepeat that.",
        ]
    )
    return [user(ask.replace("{t}", text)), assistant(text)]


# --- conversations ------------------------------------------------------------------------------

AGAIN = [
    "Another one.",
    "Another one, please.",
    "One more.",
    "Again.",
    "And another one?",
    "Write a different one.",
    "Next one please",
    "one more please",
    "Can you write another?",
    "That was good. Another one!",
    "Now a new one.",
]
FLIP = {
    "positive": [
        "Now a positive one.",
        "And a positive one?",
        "Please make it positive.",
        "Now the opposite: positive.",
        "Turn it into a positive review.",
    ],
    "negative": [
        "Now a negative one.",
        "And a negative one?",
        "Make it negative.",
        "The same, but negative.",
        "Now write a bad one.",
    ],
}


def review_thread(rng: Rng) -> list[Message]:
    """A review and what people ask next."""
    record = review(rng, sentiment=rng.choice(["positive", "negative"]))
    turns = plain(rng, record)
    subject, mood = record.about or pick_product(rng), record.fields["sentiment"]
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        dice = rng.random()
        if dice < 0.25:
            record = review(rng, sentiment=mood, about=subject)
            turns += [user(as_typed(rng, rng.choice(AGAIN))), assistant(record.text)]
        elif dice < 0.5:
            mood = "negative" if mood == "positive" else "positive"
            record = review(rng, sentiment=mood, about=subject)
            turns += [user(as_typed(rng, rng.choice(FLIP[mood]))), assistant(record.text)]
        elif dice < 0.7:
            subject = pick_product(rng)
            record = review(rng, sentiment=mood, about=subject)
            ask = rng.choice(
                [
                    "Now for {a}.",
                    "And for {a}?",
                    "The same for {a}.",
                    "What about {a}?",
                    "Now {a}, please.",
                    "Do the same for {a}.",
                ]
            ).replace("{a}", article(subject[0]))
            turns += [user(as_typed(rng, ask)), assistant(record.text)]
        elif dice < 0.82:
            ask = rng.choice(
                [
                    "As JSON, please.",
                    "Now the same as JSON.",
                    "Give me that as JSON with text and label.",
                    "Put it into JSON.",
                ]
            )
            turns += [user(ask), assistant(json.dumps({"text": record.text, "label": mood}))]
        elif dice < 0.92:
            ask = rng.choice(
                [
                    "Give it a title.",
                    "What would be a title?",
                    "A title, please.",
                    "Now a headline for it.",
                ]
            )
            turns += [user(ask), assistant(record.fields["title"])]
        else:
            ask = rng.choice(
                ["Is that positive or negative?", "Which sentiment is that?", "What is its label?"]
            )
            turns += [user(ask), assistant(f"It is {mood}.")]
    return turns


def other_thread(rng: Rng) -> list[Message]:
    """The same kind of text again, on the same subject."""
    maker = rng.choice([intent, ticket, labelled, profile, reply])
    record = maker(rng)
    turns = plain(rng, record)
    key = record.label_field
    for _ in range(rng.choice([1, 1, 2])):
        for _ in range(400):
            more = maker(rng)
            if more.fields[key] == record.fields[key] and more.text != record.text:
                turns += [user(as_typed(rng, rng.choice(AGAIN))), assistant(more.text)]
                break
    return turns


def name_thread(rng: Rng) -> list[Message]:
    """The reader's name, told and asked for later."""
    name = rng.choice(WORDS["name"]) if rng.random() < 0.5 else made_up(rng)
    tell = rng.choice(
        [
            "My name is {n}.",
            "I am {n}.",
            "Hi, I am {n}.",
            "Hello, my name is {n}.",
            "I'm {n}, and you?",
            "You can call me {n}.",
            "{n} here, hello!",
            "hi i'm {n}",
            "my name is {n}",
        ]
    ).replace("{n}", name)
    back = rng.choice(
        [
            "Nice to meet you, {n}! What can I do for you?",
            "Hello {n}! I am the demo model of this workbench.",
            "Hi {n}! How can I help?",
            "Pleased to meet you, {n}.",
        ]
    ).replace("{n}", name)
    middle: list[Message] = []
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        middle += rng.choice([small_talk, outside, lambda r: fact(r, "")])(rng)
    ask = rng.choice(
        [
            "What is my name?",
            "Do you remember my name?",
            "what's my name",
            "Who am I?",
            "How am I called?",
        ]
    )
    end = rng.choice(
        ["Your name is {n}.", "You are {n}.", "You told me that you are {n}.", "{n}, of course."]
    ).replace("{n}", name)
    if rng.random() < 0.15:
        return [
            *middle,
            user(ask),
            assistant(
                rng.choice(
                    ["You have not told me your name yet.", "I do not know, you have not told me."]
                )
            ),
        ]
    turns = [user(tell), assistant(back), *middle]
    return [*turns, user(ask), assistant(end)] if rng.random() < 0.75 else turns


def one_exchange(rng: Rng, system: str) -> list[Message]:
    dice = rng.random()
    if system == DATA or "synthetic" in system or "texts" in system or "data gen" in system:
        dice = 0.5 + dice / 2
    if dice < 0.24:
        return fact(rng, system)
    if dice < 0.38:
        return small_talk(rng)
    if dice < 0.55:
        return outside(rng)
    if dice < 0.86:
        return plain(rng, any_record(rng))
    if dice < 0.96:
        return json_in_words(rng, any_record(rng))
    return judge(rng) if rng.random() < 0.6 else several(rng)


@cache
def system_choices() -> tuple[list[str], list[float]]:
    weights = {"": 0.27, HELPFUL: 0.32, SHORT: 0.1, DATA: 0.1, TEACHER: 0.08, CODER: 0.05}
    rest = 1 - sum(weights.values())
    weights |= {text: rest / len(OTHER) for text in OTHER}
    return list(weights), list(weights.values())


def conversation(rng: Rng, long: bool = False) -> Conversation:
    """One conversation; `long` ones have many turns, up to about a thousand tokens."""
    if not long and rng.random() < 0.27:
        return with_schema(rng, any_record(rng))
    system = rng.choices(*system_choices())[0]
    turns: list[Message] = []
    dice = rng.random()
    if not long and rng.random() < ECHO:
        turns = echo(rng)
    elif long:
        for _ in range(rng.randrange(5, 14)):
            kind = rng.random()
            if kind < 0.15:
                turns += review_thread(rng)
            elif kind < 0.25:
                turns += name_thread(rng)
            else:
                turns += one_exchange(rng, system)
    elif dice < 0.70:
        turns = one_exchange(rng, system)
    elif dice < 0.80:
        turns = review_thread(rng)
    elif dice < 0.84:
        turns = other_thread(rng)
    elif dice < 0.87:
        turns = name_thread(rng)
    else:
        if rng.random() < 0.4:
            turns = small_talk(rng, "hello")
        for _ in range(rng.choice([2, 2, 3, 4])):
            turns += one_exchange(rng, system)
        if rng.random() < 0.25:
            turns += small_talk(rng, rng.choice(["thanks", "bye"]))
    head = [{"role": "system", "content": system}] if system else []
    return head + turns


def conversations(seed: int, long_share: float = 0.02) -> Iterator[Conversation]:
    rng = random.Random(seed)
    while True:
        yield conversation(rng, long=rng.random() < long_share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()
    for _, talk in zip(range(args.count), conversations(args.seed), strict=False):
        for message in talk:
            print(f"{message['role']}: {message['content']}")
        print("---")


if __name__ == "__main__":
    main()
