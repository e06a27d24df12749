"""Made-up customer texts: each record is a text with everything one could ask about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from texts import WORDS, Block, Rng, article, capital, fill, read_blocks, sentence

Subject = tuple[str, Block]  # a product and its kind


@dataclass
class Record:
    """`fields` are the values a JSON object may be made of; `asks` are requests that lead to it."""

    kind: str
    fields: dict[str, Any]
    asks: list[str]
    label_field: str = ""
    labels: list[str] = field(default_factory=list)  # all labels it could have had
    facts: dict[str, str] = field(default_factory=dict)
    about: Subject | None = None

    @property
    def text(self) -> str:
        return str(self.fields["text"])


@cache
def blocks(filename: str) -> list[Block]:
    return read_blocks(filename)


GROUP = {
    "food and drink": "food",
    "hotel or stay": "place",
    "restaurant": "place",
    "service": "place",
    "app or software": "app",
    "book, film or show": "media",
}
SENTIMENTS = ("positive", "negative", "neutral")
ADJECTIVES = {
    "positive": [
        "positive",
        "positive",
        "good",
        "enthusiastic",
        "happy",
        "glowing",
        "five-star",
        "friendly",
        "praising",
        "very positive",
        "satisfied",
    ],
    "negative": [
        "negative",
        "negative",
        "bad",
        "angry",
        "critical",
        "unhappy",
        "one-star",
        "disappointed",
        "terrible",
        "very negative",
        "harsh",
    ],
    "neutral": ["neutral", "neutral", "mixed", "balanced", "three-star", "so-so", "average"],
}
OPEN = {
    "positive": {
        "any": [
            "I am very happy with this {x}",
            "This {x} is wonderful",
            "What a great {x}",
            "I love this {x}",
            "The best {x} I know",
            "I can only recommend this {x}",
            "Five stars for this {x}",
            "This {x} is exactly what I was looking for",
            "I did not expect much, but this {x} is excellent",
            "A very good {x}",
            "{who} told me about this {x}, and it is great",
            "This {x} is worth every penny",
            "I am surprised how good this {x} is",
            "Finally a {x} that keeps its promises",
        ],
        "goods": [
            "I bought this {x} {ago} and would buy it again",
            "I use this {x} {use}",
            "This {x} replaced my old one, and what a difference",
            "My new {x} is a joy",
            "I got this {x} as a present from {who}",
            "I ordered this {x} {ago}",
            "After a year this {x} is still like new",
            "We use the {x} {use} and love it",
        ],
        "food": [
            "I have finished my third pack of this {x}",
            "This {x} is delicious",
            "I bought this {x} {ago} and have already ordered more",
        ],
        "place": [
            "We visited this {x} {ago} and will come back",
            "A lovely {x}",
            "I have been coming to this {x} for years",
            "{who} and I were at this {x} {ago}",
        ],
        "app": [
            "I have used this {x} {use} and do not want to miss it",
            "A really useful {x}",
            "I tried many, and this {x} is the best",
        ],
        "media": [
            "I enjoyed this {x} from beginning to end",
            "I got to know this {x} {ago}",
            "{who} gave me this {x}, and I am grateful",
        ],
    },
    "negative": {
        "any": [
            "What a disappointment this {x} is",
            "I am very unhappy with this {x}",
            "Never again",
            "This {x} is a waste of money",
            "One star for this {x}",
            "I had high hopes for this {x}",
            "I cannot recommend this {x}",
            "A terrible {x}",
            "I wanted to like this {x}",
            "Stay away from this {x}",
            "This {x} is awful",
            "{who} warned me about this {x}, and it was true",
            "This {x} is a bad joke",
            "I have rarely been so annoyed by a {x}",
            "Sadly, this {x} is no good",
        ],
        "goods": [
            "I bought this {x} {ago} and regret it",
            "Do not buy this {x}",
            "I am sending this {x} back",
            "The {x} looked good in the shop, but no more",
            "I ordered this {x} {ago}, and it is already in the bin",
            "This is my second {x} of this brand and my last",
            "My old {x} was far better",
        ],
        "food": [
            "I threw this {x} away",
            "I could not finish this {x}",
            "I bought this {x} {ago} and will not buy it again",
        ],
        "place": [
            "We were at this {x} {ago} and left angry",
            "The worst {x} in town",
            "{who} and I will not come to this {x} again",
        ],
        "app": [
            "I have deleted this {x}",
            "This {x} used to be good",
            "I gave this {x} a second chance, for nothing",
        ],
        "media": [
            "I want my time back",
            "This {x} bored me to tears",
            "I do not understand the praise for this {x}",
        ],
    },
    "neutral": {
        "any": [
            "This {x} is all right",
            "An average {x}",
            "I have mixed feelings about this {x}",
            "The {x} is neither good nor bad",
            "Three stars for this {x}",
            "A so-so {x}",
            "This {x} has its good and bad sides",
            "The {x} is okay, no more and no less",
            "I am not sure what to think of this {x}",
            "You get what you pay for",
        ],
        "goods": [
            "I have had this {x} since {month}",
            "I bought this {x} {ago}, and it does its job",
        ],
        "food": ["This {x} is fine for {use2}", "You can eat it, but I know better ones"],
        "place": ["We were at this {x} {ago}", "This {x} is fine if you are nearby"],
        "app": ["I use this {x} now and then", "This {x} does the basics"],
        "media": [
            "I expected more of this {x}, but it is not bad",
            "This {x} is fine for a Sunday",
        ],
    },
}
CLOSE = {
    "positive": [
        "Highly recommended",
        "I would choose it again any time",
        "Five stars",
        "I could not be happier",
        "Thank you for this",
        "Well worth the money",
        "I have already told my friends",
        "Simply great",
        "Nothing to complain about",
        "My whole family agrees",
        "I would give six stars if I could",
        "Top",
        "I will recommend it to {who}",
        "Keep it up",
    ],
    "negative": [
        "I want my money back",
        "Never again",
        "Save your money",
        "One star is too many",
        "I would give zero stars if I could",
        "Very disappointing",
        "Keep away from it",
        "I have asked for a refund",
        "I will not recommend it to anyone",
        "Nobody answered my complaint",
        "I expected much more",
        "What a shame",
        "I will look for something better",
        "Not even {who} wants it",
    ],
    "neutral": [
        "All in all it is fine",
        "It is good enough for me",
        "Three stars from me",
        "Maybe the next one will be better",
        "I would think twice before I buy again",
        "For the price it is acceptable",
        "Nothing special",
        "It depends on what you need",
        "I will keep it, but I do not love it",
    ],
}
ASPECTS = {
    "price": (
        ["the price is fair", "it costs less than others", "it is worth its price"],
        ["it is far too expensive", "the price is a joke", "it costs twice as much as others"],
    ),
    "delivery": (
        ["delivery took just one day", "it arrived early and well packed"],
        ["delivery took three weeks", "it arrived late and in a torn box"],
    ),
    "customer service": (
        ["customer service was quick and kind", "the hotline helped at once"],
        ["customer service never answered", "the hotline was rude"],
    ),
    "quality": (
        ["the quality is excellent", "the quality is better than I expected"],
        ["the quality is poor", "the quality has gone downhill"],
    ),
    "size": (
        ["the size is just right", "it is bigger than I thought, which is nice"],
        ["it is much smaller than I thought", "the size is all wrong"],
    ),
    "design": (
        ["the design is beautiful", "it looks modern and simple"],
        ["the design is ugly", "it looks like something from the bin"],
    ),
    "packaging": (
        ["the packaging was free of plastic", "it was packed with care"],
        ["there was far too much plastic around it", "the packaging was torn"],
    ),
    "instructions": (
        ["the instructions are clear", "the manual explains everything"],
        ["the instructions are useless", "the manual is only in Chinese"],
    ),
}
PLACE_ASPECTS = ("price", "customer service", "quality")
TITLES = {
    "positive": [
        "Great {x}",
        "Very happy",
        "Highly recommended",
        "Simply wonderful",
        "Love it",
        "Better than expected",
        "My new favourite {x}",
        "Worth every penny",
        "Top {x}",
        "A joy to use",
        "Exactly right",
        "Excellent {x}",
        "Would choose it again",
    ],
    "negative": [
        "Terrible {x}",
        "Never again",
        "Waste of money",
        "Very disappointing",
        "Awful {x}",
        "Do not buy",
        "Bad quality",
        "Not worth it",
        "Stay away",
        "What a letdown",
        "Worst {x} ever",
        "Regret it",
        "Poor {x}",
    ],
    "neutral": [
        "It is okay",
        "Average {x}",
        "Good and bad sides",
        "Mixed feelings",
        "Does its job",
        "Nothing special",
        "Not bad, not great",
        "A so-so {x}",
        "Fine for the price",
    ],
}
RATINGS = {"positive": (5, 5, 4), "negative": (1, 1, 2), "neutral": (3,)}
EXTRA_ADJECTIVES = [
    "cordless",
    "wooden",
    "compact",
    "second-hand",
    "small",
    "large",
    "cheap",
    "red",
    "foldable",
    "portable",
    "vintage",
    "handmade",
    "waterproof",
    "used",
    "black",
    "solar-powered",
    "refurbished",
    "smart",
    "professional",
    "children's",
    "white",
]


def hold_out(name: str) -> bool:
    """About one product in twenty-five is never trained on, so that samples can use it."""
    return sum(map(ord, name)) % 25 == 7


SYLLABLES = re.findall(
    r"\w+",
    "ba be bo ca co da de di do fa fe fi ga go ha he hi jo ka ke ki ko la le li lo lu ma me mi "
    "mo na ne ni no o pa pe pi ra re ri ro ru sa se si so ta te ti to tu va vi wa we wil yo za zo "
    "an el in or",
)
TAILS = (
    "n",
    "r",
    "l",
    "x",
    "t",
    "",
    "",
    "s",
    "nd",
    "ck",
    "m",
    "lla",
    "na",
    "th",
    "no",
    "phone",
    "scope",
    "ette",
    "ber",
)


def made_up(rng: Rng) -> str:
    """A name nobody has: so the model learns to copy what it was told."""
    return capital("".join(rng.sample(SYLLABLES, rng.choice([2, 2, 3]))) + rng.choice(TAILS))


def pick_product(rng: Rng, unseen: bool = False) -> Subject:
    while True:
        block = rng.choice(blocks("products.txt"))
        item = rng.choice(block.lines["items"])
        if hold_out(item) != unseen:
            continue
        if rng.random() < 0.06 and GROUP.get(block.name) is None and " of " not in item:
            item = f"{rng.choice(EXTRA_ADJECTIVES)} {item}"
        if (
            not unseen
            and rng.random() < 0.05
            and GROUP.get(block.name) is None
            and " of " not in item
        ):
            strange = made_up(rng)
            item = strange.lower() if rng.random() < 0.6 else f"{strange} {item.split()[-1]}"
        return item, block


def join_clauses(rng: Rng, first: str, second: str, contrast: bool) -> list[str]:
    """Two clauses as one or two sentences."""
    if contrast:
        link = rng.choice([", but ", ", but ", "; however, ", ", although "])
        return [sentence(first + link + second)]
    if rng.random() < 0.45:
        return [sentence(first + ", and " + second)]
    also = rng.choice(["", "", "besides, ", "also, ", "on top of that, "])
    return [sentence(first), sentence(also + second)]


def review_text(
    rng: Rng, item: str, block: Block, sentiment: str, length: str, aspect: str = ""
) -> str:
    group = GROUP.get(block.name, "goods")

    def say(text: str) -> str:
        return fill(
            rng,
            text.replace(" a {x}", " {a}"),
            x=item,
            a=article(item),
            month=rng.choice(["January", "May", "summer", "last year"]),
            use2=rng.choice(["in between", "a change", "every day"]),
        )

    good, bad = list(block.lines["good"]), list(block.lines["bad"])
    rng.shuffle(good)
    rng.shuffle(bad)
    if rng.random() < 0.25 and not aspect:
        names = list(ASPECTS) if group == "goods" else list(PLACE_ASPECTS)
        aspect = rng.choice(names)
    if aspect:
        good.insert(0, rng.choice(ASPECTS[aspect][0]))
        bad.insert(0, rng.choice(ASPECTS[aspect][1]))
    own, other = (good, bad) if sentiment == "positive" else (bad, good)
    parts: list[str] = []
    openers = OPEN[sentiment]["any"] + 2 * OPEN[sentiment][group]
    if length != "tiny" or rng.random() < 0.3:
        parts.append(sentence(say(rng.choice(openers))))
    if sentiment == "neutral":
        first, second = (good, bad) if rng.random() < 0.6 else (bad, good)
        parts += join_clauses(rng, say(first[0]), say(second[0]), contrast=True)
        if length == "long":
            parts += join_clauses(rng, say(second[1]), say(first[1]), contrast=True)
    else:
        clauses = [say(c) for c in own[: {"tiny": 1, "short": 1, "medium": 2, "long": 4}[length]]]
        if length == "tiny":
            parts.append(sentence(f"The {item} is {sentiment}" if not clauses else clauses[0]))
        elif length == "short":
            parts.append(sentence(clauses[0]))
        else:
            for i in range(0, len(clauses), 2):
                parts += join_clauses(rng, clauses[i], clauses[i + 1], contrast=False)
            if length == "long" and rng.random() < 0.5:
                only = (
                    "the only good thing is that" if sentiment == "negative" else "my only wish is"
                )
                if sentiment == "negative":
                    parts.append(sentence(f"{only} {say(other[0])}"))
    if length in ("medium", "long") or (length == "short" and rng.random() < 0.4):
        parts.append(sentence(say(rng.choice(CLOSE[sentiment]))))
    text = " ".join(parts)
    if length != "tiny" and item.split()[-1] not in text and rng.random() < 0.8:
        text = re.sub(
            r"\b([Ii])t\b", lambda m: ("T" if m[1] == "I" else "t") + f"he {item}", text, count=1
        )
    return text


LENGTHS = {
    "tiny": ["one-sentence", "very short"],
    "short": ["short", "brief", "two-sentence"],
    "medium": [""],
    "long": ["long", "detailed"],
}


def review(
    rng: Rng, unseen: bool = False, sentiment: str = "", about: Subject | None = None
) -> Record:
    item, block = about or pick_product(rng, unseen)
    told = rng.random() < 0.85  # the request names the sentiment
    sentiment = sentiment or rng.choices(SENTIMENTS, (0.42, 0.42, 0.16))[0]
    length = rng.choices(list(LENGTHS), (0.1, 0.35, 0.4, 0.15))[0]
    aspect = ""
    if rng.random() < 0.1:
        names = list(ASPECTS) if GROUP.get(block.name) is None else list(PLACE_ASPECTS)
        aspect = rng.choice(names)
    text = review_text(rng, item, block, sentiment, length, aspect)
    stars = rng.choice(RATINGS[sentiment])
    adjective = rng.choice(ADJECTIVES[sentiment]) if told else ""
    if told and adjective in ("five-star", "one-star"):
        stars = 5 if adjective == "five-star" else 1
    size = rng.choice(LENGTHS[length])
    if length in ("short", "tiny") and rng.random() < 0.4:
        size = ""
    both = " ".join(filter(None, [size, adjective]))
    one = article(f"{both} review") if both else "a review"
    x = article(item)
    asks = [
        f"Write {one} of {x}.",
        f"Write {one} of {x}.",
        f"Write {one} of {x}.",
        f"Write {one} of {x}.",
        f"Write {one} about {x}.",
        f"Please write {one} of {x}.",
        f"Give me {one} of {x}.",
        f"I need {one} of {x}.",
        f"Can you write {one} of {x}?",
        f"{capital(one)} of {x}, please.",
        f"Could you write {one} for {x}?",
        f"Make up {one} of {x}.",
        f"Invent {one} of {x}.",
        f"Write {article(f'{both} customer review'.strip())} for {x}.",
        f"Create {one} for {x}.",
        f"Pretend that you are a customer and write {one} of {x}.",
        f"Compose {one} of {x}.",
        f"{capital(both + ' review' if both else 'review')}: {item}",
        f"I want {one} about {x}.",
        f"Write {one} of {x} as a customer would write it.",
        f"{item} review, {both or 'any'}",
        f"Let me see {one} of {x}.",
        f"Generate {one} of {x}.",
        f"Draft {one} of {x}.",
        f"A customer bought {x}. Write {one}.",
        f"Show me {one} of {x}.",
        f"How would {one} of {x} sound?",
        f"write me {one} about {x}",
    ]
    if told:
        asks += [
            f"Product: {item}\nSentiment: {sentiment}\n\nWrite the review.",
            f"Write a review of {x}. The sentiment is {sentiment}.",
            f"Write a customer review.\nproduct: {item}\nsentiment: {sentiment}",
            f"Write a review with the label {sentiment} about {x}.",
            f"Review of {x}, label: {sentiment}",
            f"Write one {sentiment} review for the product {item}.",
            f"Write a review of {x} by someone who "
            + {"positive": "loves it.", "negative": "hates it.", "neutral": "is not sure."}[
                sentiment
            ],
            f"Write a review of {x} with {stars} star{'s' if stars > 1 else ''}.",
            f"Write a review of {x}, {stars} out of 5.",
        ]
    if aspect:
        asks = [a.rstrip(".") + f" that mentions the {aspect}." for a in asks if a.endswith(".")]
    words = item.split()
    good = [fill(rng, c) for c in rng.sample(block.lines["good"], 2)]
    bad = [fill(rng, c) for c in rng.sample(block.lines["bad"], 2)]
    fields: dict[str, Any] = {
        "text": text,
        "review": text,
        "title": fill(rng, rng.choice(TITLES[sentiment]), x=item),
        "label": sentiment,
        "sentiment": sentiment,
        "rating": stars,
        "stars": stars,
        "product": item,
        "category": block.name,
        "name": rng.choice(WORDS["name"]),
        "author": f"{rng.choice(WORDS['name'])} {rng.choice(WORDS['surname'])}",
        "recommended": sentiment == "positive",
        "would_buy_again": sentiment == "positive",
        "tags": [words[-1], sentiment, *([aspect] if aspect else [])],
        "city": rng.choice(WORDS["city"]),
        "pros": good,
        "cons": bad,
        "verified": rng.random() < 0.8,
        "helpful_votes": rng.randrange(40),
    }
    return Record("review", fields, asks, "label", list(SENTIMENTS), about=(item, block))


GREETINGS = [
    "Hi",
    "Hello",
    "Good morning",
    "Hi there",
    "Dear team",
    "Hey",
    "Good evening",
    "Dear support",
    "Hello everyone",
    "Dear Sir or Madam",
    "Good afternoon",
]
ENDINGS = [
    "Thanks",
    "Thank you",
    "Please let me know",
    "Thanks in advance",
    "Please help",
    "Kind regards, {name}",
    "Best wishes, {name}",
    "What can I do?",
    "Please answer soon",
    "Thank you for your help",
    "I look forward to your answer",
    "It is really important to me",
    "Please call me back",
    "Many thanks, {name}",
    "Greetings from {city}",
    "Is that possible?",
]
DETAILS = [
    "My customer number is {num}.",
    "The order number is {num}.",
    "My name is {name} {surname}.",
    "You can reach me on {day}.",
    "I tried to call on {day}.",
    "I live in {city}.",
    "I have been a customer for years.",
    "I wrote to you on {day} already.",
    "It is about the order from {ago}.",
    "I am writing from {city}.",
]


def intent_pairs() -> list[tuple[Block, str]]:
    return [(b, o) for b in blocks("intents.txt") for o in b.lines["O"]]


def intent_name(block: Block, thing: str) -> str:
    return f"{block.name}_{thing}".lower().replace(" ", "_").replace("-", "_")


def number(rng: Rng) -> str:
    return str(rng.randrange(10_000, 99_999))


def message_text(rng: Rng, block: Block, thing: str) -> str:
    pattern = rng.choice(block.lines["S"]).replace(" a {o}", " {a}")
    say = sentence(fill(rng, pattern, o=thing, a=article(thing)))
    why = sentence(fill(rng, rng.choice(block.lines["W"]), o=thing))
    parts = [say]
    if rng.random() < 0.6:
        parts = [say, why] if rng.random() < 0.75 else [why, say]
    if rng.random() < 0.22:
        detail = fill(rng, rng.choice(DETAILS), num=number(rng))
        parts.insert(rng.randrange(len(parts) + 1), detail)
    if rng.random() < 0.35:
        greeting = rng.choice(GREETINGS)
        head = parts[0] if parts[0].startswith(("I ", "I'")) else parts[0][0].lower() + parts[0][1:]
        parts[0] = f"{greeting}, {head}"
    if rng.random() < 0.35:
        parts.append(sentence(fill(rng, rng.choice(ENDINGS))))
    return " ".join(parts)


TONES = {"": "", "polite": "", "short": "", "angry": "", "friendly": ""}
NO_ARTICLE = {"lost": "report a lost {o}", "broken": "report a broken {o}"}


def wish(block: Block, thing: str) -> str:
    return fill(Rng(0), block.lines["D"][0], a=article(thing), o=thing)


def intent(rng: Rng, unseen: bool = False) -> Record:
    while True:
        block = rng.choice(blocks("intents.txt"))
        thing = rng.choice(block.lines["O"])
        if hold_out(intent_name(block, thing)) == unseen:
            break
    name = intent_name(block, thing)
    if block.name == "lost" and rng.random() < 0.5:
        name = f"lost_{thing.lower().replace(' ', '_')}"
    text = message_text(rng, block, thing)
    others = [intent_name(*pair) for pair in rng.sample(intent_pairs(), rng.randrange(1, 6))]
    if rng.random() < 0.25:  # a coarse set of labels: the verbs alone
        name = block.name
        others = [b.name for b in rng.sample(blocks("intents.txt"), rng.randrange(1, 6))]
    d = wish(block, thing)
    w = rng.choice(
        [
            "a customer message",
            "a message",
            "a short message",
            "a chat message",
            "a customer request",
            "an email",
            "a text",
            "one message",
            "a customer question",
        ]
    )
    asks = [
        f"Write {w} with the intent {name}.",
        f"Write {w} with the intent {name}.",
        f"Write a customer message with the intent {name}.",
        f"Write {w} for the intent {name}.",
        f"Write {w} from a customer who wants to {d}.",
        f"A customer wants to {d}. Write {w}.",
        f"Give me {w} with the intent {name}.",
        f"Intent: {name}\nWrite {w}.",
        f"What would a customer write who wants to {d}?",
        f"Generate {w} for the label {name}.",
        f"Write what a customer says to {d}.",
        f"I need {w} in which someone wants to {d}.",
        f"Make up {w} to {d}.",
        f"Write {w} in which a customer wants to {d}.",
        f'Please write {w} with the intent "{name}".',
        f"intent = {name}, write the message",
        f"Invent {w} by a customer. The intent is {name}.",
        f"Create {w} labelled {name}.",
        f"Customer message, intent {name}",
        f"Write {w}.\nintent: {name}",
    ]
    replies = next(b for b in blocks("replies.txt") if b.name == block.name).lines[""]
    pattern = rng.choice(replies).replace(" a {o}", " {a}")
    reply = sentence(fill(rng, pattern, o=thing, a=article(thing)))
    urgent = block.name in ("lost", "broken", "damaged", "login", "wrong_charge", "payment")
    unhappy = urgent or block.name in ("complaint", "refund", "cancel", "close", "return")
    fields: dict[str, Any] = {
        "text": text,
        "message": text,
        "utterance": text,
        "intent": name,
        "label": name,
        "category": block.name,
        "topic": thing,
        "product": thing,
        "reply": reply,
        "answer": reply,
        "question": text,
        "name": rng.choice(WORDS["name"]),
        "priority": "high" if urgent else "low",
        "urgent": urgent,
        "sentiment": "positive" if block.name == "praise" else "negative" if unhappy else "neutral",
        "subject": capital(f"{thing}: {block.name.replace('_', ' ')}"),
        "customer_id": int(number(rng)),
        "tags": [block.name.replace("_", " "), thing],
        "city": rng.choice(WORDS["city"]),
    }
    labels = list(dict.fromkeys([name, *others]))
    return Record("intent", fields, asks, "intent", labels, {"wish": d, "reply": reply})


URGENCY = {
    "high": (
        [
            "Nobody can work.",
            "Our customers are waiting.",
            "We are losing money every hour.",
            "The whole team is affected.",
            "I have a deadline today.",
            "Everything stands still.",
        ],
        [
            "Please fix this today.",
            "This is urgent.",
            "Please call me at once.",
            "We need help right away.",
            "It cannot wait until tomorrow.",
        ],
    ),
    "medium": (
        [
            "It costs us a lot of time.",
            "It happens several times a day.",
            "Two of my colleagues have it too.",
            "It started {ago}.",
            "It makes my work harder.",
        ],
        [
            "Please have a look at it this week.",
            "When can you fix it?",
            "I would be glad about a quick answer.",
            "Can you tell me what to do?",
        ],
    ),
    "low": (
        [
            "It is only a small thing.",
            "I can work around it.",
            "It happens now and then.",
            "I noticed it {ago}.",
            "It is not a big problem.",
        ],
        [
            "It is not urgent.",
            "There is no hurry.",
            "Please look at it when you have time.",
            "Any time next month is fine.",
        ],
    ),
}
TRIED = [
    "I have restarted everything.",
    "I tried it in another browser.",
    "I followed the manual.",
    "It worked last week.",
    "I have not changed anything.",
    "I have already asked {name}.",
    "The same thing happens on {who2} computer.",
    "A restart did not help.",
    "I cleared the cache.",
    "It began after the last update.",
    "I checked all cables.",
]


def ticket(rng: Rng, unseen: bool = False) -> Record:
    block = rng.choice(blocks("tickets.txt"))
    i = rng.randrange(len(block.lines["P"]))
    title, problem = block.lines["T"][i], block.lines["P"][i]
    if rng.random() < 0.35:
        title += rng.choice(
            [
                " again",
                " since Monday",
                " after the update",
                ": please help",
                " at home",
                " on two computers",
                " since this morning",
            ]
        )
    priority = rng.choice(list(URGENCY))
    impact, request = URGENCY[priority]
    once = re.match(
        r"I (asked|clicked|received|lost|did|never)|there was|one of|the \w+ (was|arrived)", problem
    )
    since = (
        ""
        if once
        else rng.choice(["", "", "Since {day} ", "Since this morning ", "Since the update "])
    )
    said = sentence(fill(rng, since + problem))
    if not once and not since and rng.random() < 0.3:
        said = said[:-1] + rng.choice(
            [", for two days now.", ", once again.", ", again and again."]
        )
    parts = [said]
    if rng.random() < 0.55:
        parts.append(
            fill(
                rng, rng.choice(TRIED), who2=rng.choice(["my colleague's", "my boss's", "my other"])
            )
        )
    parts.append(fill(rng, rng.choice(impact)))
    if rng.random() < 0.75:
        parts.append(rng.choice(request))
    if rng.random() < 0.4:
        parts[0] = f"{rng.choice(GREETINGS)}, " + (
            parts[0] if parts[0].startswith("I ") else parts[0][0].lower() + parts[0][1:]
        )
    if rng.random() < 0.3:
        parts.append(
            sentence(
                fill(rng, rng.choice(["Thanks, {name}", "Regards, {name} {surname}", "Thank you"]))
            )
        )
    body = " ".join(parts)
    told = rng.random() < 0.4
    level = {
        "high": ["urgent", "high-priority"],
        "medium": ["medium-priority"],
        "low": ["low-priority", "not urgent"],
    }[priority]
    adj = rng.choice(level) if told else ""
    one = article(f"{adj} support ticket" if adj and adj != "not urgent" else "support ticket")
    low = title[0].lower() + title[1:] if not title[:2].isupper() else title
    topic = rng.choice(
        [
            f"about {article_topic(block.name)}",
            f"about {article_topic(block.name)}",
            f"in the category {block.name}",
        ]
    )
    asks = [
        f"Write {one} {topic}.",
        f"Write {one} {topic}.",
        f"Write {one}: {low}.",
        f'Write {one} with the title "{title}".',
        f"Give me {one} {topic}.",
        f"I need {one} {topic}.",
        f"Please write {one} {topic}.",
        f"Make up {one} {topic}.",
        f"Create {one}.\ncategory: {block.name}" + (f"\npriority: {priority}" if told else ""),
        f"A customer has a problem: {problem}. Write {one}.",
        f"Can you write {one} {topic}?",
        f"Write the text of {one} {topic}.",
        f"Invent {one} {topic}.",
        f"Generate {one} {topic}.",
        f"Write {one} from a user who says that {problem}.",
        f"{capital(one)} {topic}, please.",
        f"Write {one} with the category {block.name}"
        + (f" and the priority {priority}." if told else "."),
    ]
    fields: dict[str, Any] = {
        "text": body,
        "body": body,
        "description": body,
        "message": body,
        "subject": title,
        "title": title,
        "category": block.name,
        "label": block.name,
        "topic": block.name,
        "priority": priority,
        "urgency": priority,
        "urgent": priority == "high",
        "name": rng.choice(WORDS["name"]),
        "reporter": rng.choice(WORDS["name"]),
        "ticket_id": int(number(rng)),
        "tags": [block.name, *low.split()[:1]],
        "sentiment": "negative",
        "city": rng.choice(WORDS["city"]),
    }
    labels = [b.name for b in blocks("tickets.txt")]
    return Record("ticket", fields, asks, "category", labels)


def article_topic(name: str) -> str:
    return {
        "login": "a login problem",
        "billing": "a billing problem",
        "crash": "a crash",
        "performance": "slow performance",
        "network": "a network problem",
        "email": "an email problem",
        "printing": "a printer problem",
        "data": "lost or wrong data",
        "delivery": "a delivery problem",
        "account": "an account problem",
        "hardware": "a hardware problem",
        "security": "a security problem",
        "mobile app": "the mobile app",
        "booking": "a booking problem",
        "website": "a problem with the website",
        "telephone": "the telephone",
    }[name]


def labelled(rng: Rng, unseen: bool = False) -> Record:
    """Spam or not, the topic of a headline, an emotion, the kind of a message."""
    block = rng.choice(blocks("labels.txt"))
    kind, label = block.heading
    pattern = rng.choice(block.lines[""])
    prize = rng.choice(WORDS["prize"]) if rng.random() < 0.5 else f"a free {pick_product(rng)[0]}"
    text = fill(rng, pattern, prize=prize)
    text = capital(text) if kind == "news headline" else sentence(text)
    if kind in ("email", "customer message", "text message") and label != "spam":
        if rng.random() < 0.5:
            second = fill(rng, rng.choice(block.lines[""]))
            text += " " + sentence(second) if kind == "customer message" else ""
        if rng.random() < 0.35:
            text = f"{rng.choice(GREETINGS)}! {text}"
        if rng.random() < 0.35:
            text += " " + sentence(
                fill(
                    rng,
                    rng.choice(
                        [
                            "Thanks",
                            "Best wishes, {name}",
                            "Regards, {name}",
                            "See you, {name}",
                            "Thank you",
                        ]
                    ),
                )
            )
    if label == "spam" and rng.random() < 0.4:
        text += rng.choice(
            [
                " Act now!",
                " Only today!",
                " Do not wait!",
                " 100 percent safe!",
                " No risk!",
                " Limited offer!",
            ]
        )
    one = article(kind)
    asks = [
        f"Write {one} with the label {label}.",
        f'Write {one} with the label "{label}".',
        f"Give me {one} that is labelled {label}.",
        f"Label: {label}\nWrite {one}.",
        f"Make up {one} for the label {label}.",
        f"Write {one}.\nlabel: {label}",
        f"I need {one} of the class {label}.",
        f"Generate {one}, class {label}.",
    ]
    if kind == "news headline":
        asks += [f"Write {one} about {label}."] * 5 + [f"Give me {one} on {label}."]
    elif kind == "sentence":
        asks += [f"Write {one} that expresses {label}."] * 4 + [f"Write {one} full of {label}."]
    elif label in ("spam", "not spam"):
        asks += [f"Write {one} that is {label}."] * 4
        if prize in text:
            asks += [
                f"Write {one} that is spam and offers {prize}.",
                f"Write a spam message about {prize}.",
                f"Write a spam text message about {prize}.",
            ] * 4
        asks += (
            ["Write a spam message.", "Write a spam text message."] * 3
            if label == "spam"
            else ["Write a normal text message.", "Write a text message to a friend."] * 2
        )
    elif label in ("urgent", "not urgent"):
        asks += [f"Write an email that is {label}.", f"Write {article(label)} email."] * 3
    else:
        asks += [f"Write {article(label)} from a customer.", f"Write a customer {label}."] * 3
    fields: dict[str, Any] = {
        "text": text,
        "message": text,
        "content": text,
        "label": label,
        "class": label,
        "category": label,
        "topic": label,
        "is_spam": label == "spam",
        "urgent": label == "urgent",
        "name": rng.choice(WORDS["name"]),
        "language": "English",
        "source": kind,
        "length": len(text.split()),
        "city": rng.choice(WORDS["city"]),
    }
    if kind == "news headline":
        fields["headline"] = fields["title"] = text
    if kind == "email":
        fields["body"] = text
    labels = [b.heading[1] for b in blocks("labels.txt") if b.heading[0] == kind]
    return Record("labelled", fields, asks, "label", labels)


def description(rng: Rng, unseen: bool = False) -> Record:
    """What a shop says about a product."""
    while True:
        item, block = pick_product(rng, unseen)
        if GROUP.get(block.name) in (None, "app", "food"):
            break
    good = rng.sample(block.lines["good"], 2)
    drop = ("{who}", "I ", "my ", "our ", "we ", " me", "us ")
    clauses = [c for c in good if not any(d in c for d in drop)] or [
        "it does exactly what it should"
    ]
    x = item
    first = rng.choice(
        [
            f"This {x} makes every day a little easier",
            f"Meet your new {x}",
            f"A {x} for people who expect more",
            f"Simple, solid and made to last: our {x}",
            f"Our most popular {x}",
            f"The {x} for every home",
            f"With this {x} you cannot go wrong",
            f"Once you have this {x}, you will not give it back",
        ]
    )
    if first.startswith("A "):
        first = capital(article(x)) + first[2 + len(x) :]
    text = " ".join([sentence(first), *(sentence(fill(rng, c)) for c in clauses)])
    if rng.random() < 0.6:
        text += " " + rng.choice(
            [
                "Order today.",
                "In five colours.",
                "With a two-year warranty.",
                "A lovely present.",
                "Free delivery.",
                "Made with care.",
            ]
        )
    a = article(x)
    asks = [
        f"Write a product description of {a}.",
        f"Write a short product description for {a}.",
        f"Describe {a} for an online shop.",
        f"I sell {a}. Write a description.",
        f"Give me a product text for {a}.",
        f"Write an advertisement for {a}.",
    ]
    price = round(rng.choice([9, 14, 19, 24, 29, 39, 49, 59, 79, 99, 129, 199]) + 0.99, 2)
    fields: dict[str, Any] = {
        "text": text,
        "description": text,
        "product": item,
        "name": capital(item),
        "title": capital(item),
        "category": block.name,
        "price": price,
        "in_stock": rng.random() < 0.8,
        "tags": [item.split()[-1], block.name.split()[0]],
        "label": block.name,
        "rating": rng.randrange(3, 6),
        "stock": rng.randrange(200),
    }
    return Record("description", fields, asks, "category", [b.name for b in blocks("products.txt")])


def reply(rng: Rng, unseen: bool = False) -> Record:
    """The other side of an intent: what an agent answers."""
    record = intent(rng, unseen)
    d, answer = record.facts["wish"], record.facts["reply"]
    lead = rng.choice(
        [
            "",
            "Thank you for your message. ",
            "Hello! ",
            "Dear customer, thank you for writing to us. ",
            f"Hello {record.fields['name']}, thank you for your message. ",
            "Good morning! ",
        ]
    )
    end = rng.choice(
        [
            "",
            "",
            " Is there anything else I can do?",
            " Kind regards, your service team",
            " Have a nice day!",
            f" Best wishes, {rng.choice(WORDS['name'])}",
        ]
    )
    text = lead + answer + end
    asks = [
        f"Write a reply to a customer who wants to {d}.",
        f"A customer wants to {d}. Write the reply.",
        f"Answer this customer: {record.text}",
        f"Write a friendly answer to a customer who wants to {d}.",
        f'Write a support reply to this message: "{record.text}"',
        f"How should we answer a customer who wants to {d}?",
    ]
    fields = {
        **record.fields,
        "text": text,
        "reply": text,
        "answer": text,
        "message": text,
        "question": record.fields["text"],
        "sentiment": "positive",
    }
    return Record("reply", fields, asks, "intent", record.labels)


def profile(rng: Rng, unseen: bool = False) -> Record:
    """A made-up person."""
    first, last, city = (
        rng.choice(WORDS["name"]),
        rng.choice(WORDS["surname"]),
        rng.choice(WORDS["city"]),
    )
    age, job, hobby = rng.randrange(18, 80), rng.choice(WORDS["job"]), rng.choice(WORDS["hobby"])
    text = rng.choice(
        [
            f"{first} {last} is {age} years old, lives in {city} and works as {article(job)}.",
            f"My name is {first} {last}. I am {article(job)} from {city}, and I like {hobby}.",
            f"{first} {last}, {age}, is {article(job)} in {city} and enjoys {hobby}.",
            f"{first} is {article(job)} from {city} who spends every free hour on {hobby}.",
        ]
    )
    what = rng.choice(
        [
            "customer profile",
            "user profile",
            "made-up person",
            "fictional customer",
            "short profile of a customer",
            "fake customer",
        ]
    )
    asks = [
        f"Write {article(what)}.",
        f"Make up {article(what)}.",
        f"Invent {article(what)}.",
        f"Give me {article(what)}.",
        f"Create {article(what)} from {city}.",
        f"Write {article(what)} who is {article(job)}.",
        f"Generate {article(what)}.",
    ]
    fields: dict[str, Any] = {
        "text": text,
        "bio": text,
        "name": f"{first} {last}",
        "first_name": first,
        "last_name": last,
        "age": age,
        "city": city,
        "job": job,
        "hobby": hobby,
        "hobbies": [hobby, rng.choice(WORDS["hobby"])],
        "email": f"{first}.{last}@mail.example".lower(),
        "newsletter": rng.random() < 0.5,
        "customer_id": int(number(rng)),
        "occupation": job,
    }
    return Record("profile", fields, asks, "job", WORDS["job"])


MAKERS: list[tuple[Callable[..., Record], float]] = [
    (review, 0.42),
    (intent, 0.26),
    (ticket, 0.13),
    (labelled, 0.09),
    (description, 0.04),
    (reply, 0.04),
    (profile, 0.02),
]


def any_record(rng: Rng, unseen: bool = False) -> Record:
    maker = rng.choices([m for m, _ in MAKERS], [w for _, w in MAKERS])[0]
    return maker(rng, unseen)
