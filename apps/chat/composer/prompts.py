"""Prompts: messages that a person writes often, in versions, with variables."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.chat.errors import ChatError
from apps.chat.models import Prompt

VARIABLE = re.compile(r"\{\{\s*([^{}]{1,60}?)\s*\}\}")
NAME_LENGTH = 60
MAX_CHARACTERS = 50_000
MAX_FOUND = 8

# Offered to who has no prompt yet, and not stored.
EXAMPLES = {
    "summarise": "Summarise this text in {{length}}:\n\n{{text}}",
    "review-code": "Review this {{language}} code for {{focus}}:\n\n{{code}}",
    "rewrite": "Rewrite this for {{audience}}. Keep the meaning.\n\n{{text}}",
}


class BadPrompt(ChatError):
    """A prompt that cannot be saved."""

    code = "bad_prompt"


@dataclass(frozen=True)
class Piece:
    """A part of a prompt's text."""

    text: str
    is_variable: bool


def list_prompts(person: User) -> list[Prompt]:
    """Return the newest version of each prompt of a person, by name."""
    return list(Prompt.objects.owned_by(person).latest_versions())


def find_prompts(person: User, words: str) -> list[Prompt]:
    """Return the prompts whose names begin with what was typed, then those that have it.

    Who has none gets the examples, without a key.
    """
    known = list_prompts(person) or [Prompt(name=name, text=EXAMPLES[name]) for name in EXAMPLES]
    sought = words.lower()
    found = [prompt for prompt in known if sought in f"{prompt.name} {prompt.text}".lower()]
    return sorted(found, key=lambda p: not p.name.lower().startswith(sought))[:MAX_FOUND]


def pieces(text: str) -> list[Piece]:
    """Return a text in parts, each a variable's name or what stands between them."""
    parts = VARIABLE.split(text)
    return [Piece(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def clean_name(name: str) -> str:
    """Return a name as it is typed after the slash.

    Raises:
        BadPrompt: it is empty.
    """
    cleaned = "-".join(name.strip().lstrip("/").split())[:NAME_LENGTH]
    if not cleaned:
        raise BadPrompt("Enter a name for the prompt.")
    return cleaned


def save_prompt(person: User, name: str, text: str) -> Prompt:
    """Return the version with this text: the newest of that name if it is equal, else a new one.

    Raises:
        BadPrompt: no name, no text, or a text that is too long.
    """
    name, text = clean_name(name), text.strip()
    if not text:
        raise BadPrompt("Enter the text of the prompt.")
    if len(text) > MAX_CHARACTERS:
        raise BadPrompt(f"The prompt is too long. The limit is {MAX_CHARACTERS:,} characters.")
    while True:
        newest = versions(person, name)[:1]
        if newest and newest[0].text == text:
            return newest[0]
        version = newest[0].version + 1 if newest else 1
        try:
            with transaction.atomic():
                return Prompt.objects.create(owner=person, name=name, version=version, text=text)
        except IntegrityError:  # another request saved this version first
            continue


def versions(person: User, name: str) -> list[Prompt]:
    """Return all versions of a prompt, the newest first."""
    return list(Prompt.objects.owned_by(person).filter(name=name).order_by("-version"))


def rename_prompt(prompt: Prompt, name: str) -> None:
    """Rename all versions of a prompt.

    Raises:
        BadPrompt: no name, or one that another prompt has.
    """
    name = clean_name(name)
    mine = Prompt.objects.filter(owner_id=prompt.owner_id)
    if name == prompt.name:
        return
    if mine.filter(name=name).exists():
        raise BadPrompt(f"You already have a prompt “{name}”. Choose another name.")
    mine.filter(name=prompt.name).update(name=name)
    prompt.name = name


def delete_prompt(prompt: Prompt) -> None:
    """Delete all versions of a prompt."""
    Prompt.objects.filter(owner_id=prompt.owner_id, name=prompt.name).delete()
