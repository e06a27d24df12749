"""Whether what the model wrote becomes a row, and why not (pure)."""

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.generation import schemas

MAX_JSON_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Judgement:
    """`code` and `reason` are empty when the row is good."""

    output: Any = None
    code: str = ""
    reason: str = ""
    fingerprint: str | None = None


def judge(schema: Mapping[str, Any] | None, text: str, finish_reason: str) -> Judgement:
    """What becomes of an answer. Nothing is repaired: a row is what the model wrote, or none."""
    if finish_reason == "length":
        return Judgement(
            code="length", reason="Cut off: the answer reached the largest number of tokens."
        )
    if finish_reason != "stop":
        return Judgement(code="unfinished", reason=f"The model ended with “{finish_reason}”.")
    if schema is None:
        output: Any = {"text": text.strip()}
    else:
        try:
            output = _decoded(text)
        except (ValueError, RecursionError) as error:
            return Judgement(code="invalid_json", reason=f"Not valid JSON: {error}.")
        if problem := schemas.first_error(schema, output):
            return Judgement(output=output, code="schema", reason=problem)
    texts = schemas.free_texts(schema, output)
    if texts and not any(part.strip() for part in texts):
        return Judgement(output=output, code="empty", reason="The text is empty.")
    return Judgement(output=output, fingerprint=fingerprint(texts))


def fingerprint(texts: list[str]) -> str | None:
    """The same for texts a reader would call the same; None where the model wrote no free text.

    A row of labels and numbers alone may well come twice.
    """
    if not texts:
        return None
    normalised = "\x1f".join(
        " ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in texts
    )
    return hashlib.blake2b(normalised.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _decoded(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON number")

    return _whole(json.loads(text, parse_constant=refuse))


def _whole(value: Any, depth: int = 0) -> Any:
    """The value without half surrogate pairs, which no file and no database takes."""
    if depth > MAX_JSON_DEPTH:
        raise ValueError("it is nested too deeply")
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole(item, depth + 1) for item in value]
        case dict():
            return {_whole(name): _whole(item, depth + 1) for name, item in value.items()}
    return value
