"""Reads the word lists in corpus/ and holds the small grammar helpers that everything else uses."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
Rng = random.Random

WORDS: dict[str, list[str]] = {
    "time": [
        "after a week",
        "after two days",
        "after a month",
        "after three weeks",
        "within days",
        "after the second use",
        "on the first day",
        "just after the warranty ended",
        "after half a year",
        "after two months",
        "after ten days",
        "on the third day",
    ],
    "wait": [
        "an hour",
        "two hours",
        "forty minutes",
        "three hours",
        "half an hour",
        "ninety minutes",
        "fifty minutes",
        "almost an hour",
        "over two hours",
    ],
    "who": [
        "my mother",
        "my daughter",
        "my son",
        "my husband",
        "my wife",
        "my father",
        "my sister",
        "my brother",
        "my neighbour",
        "my grandmother",
        "my flatmate",
        "my best friend",
        "my colleague",
        "my uncle",
        "my boyfriend",
        "my girlfriend",
        "my grandfather",
        "my aunt",
    ],
    "name": [
        "Anna",
        "Ben",
        "Clara",
        "David",
        "Emma",
        "Finn",
        "Grace",
        "Hugo",
        "Ida",
        "Jonas",
        "Kira",
        "Leo",
        "Maria",
        "Noah",
        "Olga",
        "Paul",
        "Rosa",
        "Sam",
        "Tina",
        "Umar",
        "Vera",
        "Will",
        "Yara",
        "Zoe",
        "Ali",
        "Bea",
        "Carlos",
        "Dina",
        "Erik",
        "Fatima",
        "Georg",
        "Hanna",
        "Ivan",
        "Julia",
        "Karim",
        "Lena",
        "Marco",
        "Nina",
        "Oscar",
        "Petra",
        "Robert",
        "Sofia",
        "Tom",
        "Lucy",
        "Viktor",
        "Mei",
        "Aisha",
        "Pedro",
        "Ingrid",
        "Kofi",
        "Sarah",
        "Liam",
        "Priya",
    ],
    "surname": [
        "Smith",
        "Miller",
        "Garcia",
        "Weber",
        "Rossi",
        "Novak",
        "Jensen",
        "Kim",
        "Silva",
        "Brown",
        "Fischer",
        "Martin",
        "Lopez",
        "Kowalski",
        "Haddad",
        "Okafor",
        "Tanaka",
        "Larsen",
        "Moore",
        "Walker",
        "Young",
        "Hall",
        "Patel",
        "Costa",
        "Meyer",
        "Schmidt",
        "Evans",
        "Murphy",
    ],
    "city": [
        "Berlin",
        "Leeds",
        "Porto",
        "Oslo",
        "Vienna",
        "Boston",
        "Lyon",
        "Turin",
        "Ghent",
        "Dublin",
        "Prague",
        "Austin",
        "Bergen",
        "Zurich",
        "Malmo",
        "Seville",
        "Bristol",
        "Hamburg",
        "Denver",
        "Cork",
        "Utrecht",
        "Graz",
        "Lisbon",
        "Tampere",
        "Krakow",
        "Nantes",
        "Perth",
        "Toronto",
    ],
    "job": [
        "teacher",
        "nurse",
        "baker",
        "engineer",
        "student",
        "lawyer",
        "painter",
        "driver",
        "cook",
        "doctor",
        "librarian",
        "farmer",
        "plumber",
        "translator",
        "accountant",
        "designer",
    ],
    "hobby": [
        "reading",
        "cycling",
        "cooking",
        "chess",
        "hiking",
        "painting",
        "gardening",
        "swimming",
        "photography",
        "singing",
        "knitting",
        "running",
        "fishing",
        "dancing",
        "sailing",
    ],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "hour": ["eight", "nine", "ten", "noon", "two", "three", "half past four", "six", "seven"],
    "minutes": ["five", "ten", "fifteen", "twenty", "thirty", "forty"],
    "amount": [
        "100 euros",
        "250 dollars",
        "5,000 euros",
        "1 million dollars",
        "80 pounds",
        "12,000 euros",
        "700 dollars",
        "49 euros",
        "3 million euros",
        "20 pounds",
    ],
    "prize": [
        "a new phone",
        "a dream holiday",
        "a gift card",
        "a sports car",
        "a free cruise",
        "a gold watch",
        "1,000 euros",
        "a laptop",
        "tickets to the final",
    ],
    "link": [
        "win-now.example",
        "my-parcel.example",
        "secure-bank.example",
        "best-deal.example",
        "claim-it.example",
        "fast-cash.example",
        "bit.example/x7",
    ],
    "ago": [
        "last week",
        "two weeks ago",
        "last month",
        "three months ago",
        "in spring",
        "at the weekend",
        "half a year ago",
        "a few days ago",
        "on Monday",
        "in the sale",
    ],
    "use": [
        "every day",
        "at the weekend",
        "for work",
        "on holiday",
        "at home",
        "with the family",
        "for the first time",
        "for a party",
        "after a long search",
    ],
}

MASS = set((FOLDER / "uncountable.txt").read_text(encoding="utf-8").splitlines()[1:])


@dataclass
class Block:
    """One "= a | b" block of a word list: its heading and its lines by their leading letter."""

    heading: list[str]
    lines: dict[str, list[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.heading[0]


def read_blocks(filename: str) -> list[Block]:
    """Lines look like "Q one; two" or "good: one; two"; lines without a mark go under ""."""
    blocks: list[Block] = []
    for line in (FOLDER / filename).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("= "):
            blocks.append(Block(line[2:].split(" | ")))
            continue
        match = re.match(r"([A-Z]|items|good|bad):? (.*)", line)
        marked = match and (len(match[1]) > 1 or filename not in ("labels.txt", "replies.txt"))
        key, rest = (match[1], match[2]) if match and marked else ("", line)
        parts = [rest] if key == "A" and "|" not in rest else re.split(r"\s*[|;]\s+|\|", rest)
        if key == "S" and "|" in rest:  # steps of one answer stay together
            parts = [rest]
        blocks[-1].lines.setdefault(key, []).extend(p.strip() for p in parts if p.strip())
    return blocks


def fill(rng: Rng, text: str, **known: str) -> str:
    """Replace {slots} by known values or by a word from the list of that name."""
    return re.sub(
        r"\{(\w+)\}",
        lambda m: known[m[1]] if m[1] in known else rng.choice(WORDS[m[1]]),
        text,
    )


def article(noun: str) -> str:
    if noun in MASS:
        return noun
    vowel = noun[0] in "aeiouAEIOU" and not noun.startswith(("uni", "use", "one"))
    return f"{'an' if vowel or noun.startswith(('hour', 'X')) else 'a'} {noun}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


QUESTION = re.compile(
    r"^(how|what|when|where|who|why|which|is|are|can|could|do|does|did|will|would you|until|may|"
    r"should|shall|any|has|have you)\b",
    re.I,
)


def sentence(text: str) -> str:
    """Capital letter, and a question mark or full stop if there is no end yet."""
    text = re.sub(r"\bi\b(?!\.)", "I", capital(text.strip()))
    if text[-1] in ".!?":
        return text
    asks = QUESTION.match(text) and not re.match(r"what an? |do not |do it", text, re.I)
    asks = asks or re.search(r", (can|could|do|does|is|what|which|shall|how|who) \w+ ", text)
    return text + ("?" if asks else ".")


def typo(rng: Rng, text: str) -> str:
    """One slip of the fingers: two letters swapped, one lost or one doubled."""
    places = [i for i in range(1, len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
    if not places:
        return text
    i = rng.choice(places)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text[:i] + text[i + 1 :] if kind == 1 else text[:i] + text[i] + text[i:]


def as_typed(rng: Rng, text: str) -> str:
    """The same words as different people type them."""
    dice = rng.random()
    if dice < 0.74:
        return text
    if dice < 0.86:
        return text.lower().rstrip(".?!")
    if dice < 0.89:
        return text.lower()
    if dice < 0.92:
        return text.rstrip(".?!")
    if dice < 0.93:
        return text.upper()
    if dice < 0.955:
        return text.rstrip(".?!") + rng.choice(["!", "??", "...", "!!", " :)", " ?"])
    return typo(rng, text)
