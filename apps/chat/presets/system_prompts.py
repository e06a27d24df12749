"""System prompts of a person in versions, and their parts that invalidate the prompt cache."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.chat.models import SystemPrompt

EXAMPLES = {
    "Helpful assistant": "You are a helpful assistant.",
    "Short answers": "Answer in one or two short sentences.",
    "Teacher": "You are a patient teacher. Explain step by step.",
    "Programmer": "You are a careful programming assistant.",
}


def list_system_prompts(user: User) -> list[SystemPrompt]:
    """Return the newest version of each. A user without any gets the examples."""
    prompts = list(SystemPrompt.objects.owned_by(user).latest_versions())
    if prompts:
        return prompts
    examples = [SystemPrompt(owner=user, name=name, text=text) for name, text in EXAMPLES.items()]
    SystemPrompt.objects.bulk_create(examples, ignore_conflicts=True)
    return list(SystemPrompt.objects.owned_by(user).latest_versions())


def save_system_prompt(*, owner: User, name: str, text: str) -> SystemPrompt:
    """Return the version with this text: the newest of that name if it is equal, else a new one."""
    list_system_prompts(owner)
    while True:
        newest = SystemPrompt.objects.owned_by(owner).filter(name=name).order_by("-version").first()
        if newest is not None and newest.text == text:
            return newest
        version = newest.version + 1 if newest else 1
        try:
            with transaction.atomic():
                return SystemPrompt.objects.create(
                    owner=owner, name=name, text=text, version=version
                )
        except IntegrityError:  # another request saved this version first
            continue


def versions_of(prompt: SystemPrompt) -> list[SystemPrompt]:
    """Return all versions of a system prompt, the newest first."""
    found = SystemPrompt.objects.filter(owner_id=prompt.owner_id, name=prompt.name)
    return list(found.order_by("-version"))


@dataclass(frozen=True, slots=True)
class DifferencePart:
    """A part of two texts: same, removed from the old one, or added in the new one."""

    kind: str
    text: str


MAX_COMPARED_WORDS = 4000  # comparing takes longer with the square of it


def difference(old: str, new: str) -> list[DifferencePart]:
    """Return two texts as one, word by word; by lines if they are long."""
    split = r"\S+|\s+" if max(len(old), len(new)) < 6 * MAX_COMPARED_WORDS else r"[^\n]*\n|[^\n]+"
    before, after = re.findall(split, old), re.findall(split, new)
    found: list[DifferencePart] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            found.append(DifferencePart("same", "".join(before[a:b])))
            continue
        if b > a:
            found.append(DifferencePart("removed", "".join(before[a:b])))
        if d > c:
            found.append(DifferencePart("added", "".join(after[c:d])))
    return found


@dataclass(frozen=True, slots=True)
class ChangingPart:
    """A part of a system prompt, and why it changes."""

    text: str
    why: str


MAX_PARTS = 10
_PLACEHOLDER = re.compile(
    r"\{\{\s*([\w.]+)\s*\}\}|\{([A-Z_]{3,})\}|%(?:date|time|now)%", re.IGNORECASE
)
_DATE = re.compile(
    r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?\b"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:January|February|March|April|May|June|July|August|"
    r"September|October|November|December)\s+(?:\d{1,2}(?:st|nd|rd|th)?,?\s+)?\d{4}\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today(?:'s date)?|the current (?:date|time|day)|right now it) is\b[^.\n]{0,40}",
    re.IGNORECASE,
)


def changing_parts(text: str) -> list[ChangingPart]:
    """Return dates, times and placeholders in a system prompt.

    The server processes everything after the first changed byte again, in every conversation.
    """
    found: dict[str, ChangingPart] = {}
    for part, why in _suspects(text):
        if not any(part in other for other in found):
            found[part] = ChangingPart(part, why)
        if len(found) == MAX_PARTS:
            break
    return list(found.values())


def _suspects(text: str) -> Iterator[tuple[str, str]]:
    for match in _PLACEHOLDER.finditer(text):
        yield match[0], "this is not replaced; the model sees it literally"
    for match in _NOW.finditer(text):
        yield match[0].strip(), "only true on the day it was written"
    for match in _DATE.finditer(text):
        yield match[0], "a date or time; if you mean today, put it in your message"
