"""Ratings of answers: stored with the answer, and downloaded to work with."""

import json
from collections.abc import AsyncIterator

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import StreamingHttpResponse

from apps.chat.models import Message, Rating, RatingWord
from apps.runtime.async_db import in_db

MAX_NOTE = 1000
BATCH_SIZE = 200
FILE_NAME = "ratings.jsonl"

RATINGS: dict[RatingWord, Rating] = {"up": Rating.UP, "down": Rating.DOWN}


def rate(answer: Message, word: RatingWord | None, note: str = "") -> None:
    """Save a rating. None takes it back, and its note with it."""
    answer.rating = None if word is None else RATINGS[word]
    answer.rating_note = note.strip()[:MAX_NOTE] if word else ""
    answer.save(update_fields=["rating", "rating_note"])


def download(person: AbstractBaseUser) -> StreamingHttpResponse:
    """Return the rated answers of a person as JSONL, oldest first.

    A line has `prompt`, `answer`, `rating`, `note`, `model` and `server`: columns that a recipe of
    Generate can use.
    """
    return StreamingHttpResponse(
        _lines(person),
        content_type="application/jsonl",
        headers={"Content-Disposition": f'attachment; filename="{FILE_NAME}"'},
    )


async def _lines(person: AbstractBaseUser) -> AsyncIterator[str]:
    after = 0
    while batch := await in_db(_batch, person, after):
        yield "".join(map(_line, batch))
        after = batch[-1].pk


def _batch(person: AbstractBaseUser, after: int) -> list[Message]:
    kept = Message.objects.owned_by(person).filter(conversation__temporary_until=None)
    rated = kept.answers().exclude(rating=None)
    return list(rated.filter(pk__gt=after).select_related("parent")[:BATCH_SIZE])


def _line(answer: Message) -> str:
    row = {
        "prompt": answer.parent.content if answer.parent else "",
        "answer": answer.content,
        "rating": answer.rating_word,
        "note": answer.rating_note,
        "model": answer.model,
        "server": answer.server_name,
    }
    return json.dumps(row, ensure_ascii=False) + "\n"
