"""The questions to a model that embeds. Each fills its fields of the answers."""

import numpy as np

from apps.llm.errors import BadRequest, InputTooLarge, NotSupported
from apps.tuning.doctor.answers import Answers, LongText
from apps.tuning.doctor.questions.asker import Asker
from apps.tuning.doctor.reading import Reading

MOST_TOKENS = 2_048
# A text this long fits into the smallest batch that is usual.
SHORT_TOKENS = 64
# Their first word is all that the first token of both knows.
TEXTS = ("How warm is it in the kitchen?", "How many boats cross the sea by night?")
WORD = " room"
# For the tokens at the beginning and end that the model adds.
ROOM = 8


async def ask_for_vector(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Measure the length of a vector, and how near it is to that of another text."""
    try:
        # Each by itself: some builds compute other vectors for texts that come together.
        vectors = [(await asker.embed([text]))[0] for text in TEXTS]
    except (BadRequest, NotSupported) as error:
        answers.embedding_refused = str(error)
        return
    one, two = vectors[0].astype(np.float64), vectors[1].astype(np.float64)
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(two))
    answers.norm = lengths[0]
    if all(lengths):
        answers.likeness = float(one @ two) / (lengths[0] * lengths[1])


async def ask_for_long_text(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Send a text that nearly fills what model and slot have room for."""
    longest = reading.longest_text
    if answers.norm is None or not reading.has_own_routes or longest is None:
        return
    wanted = min(longest, MOST_TOKENS) - ROOM
    if wanted < SHORT_TOKENS:
        return
    for_each = (await _tokens(asker, WORD * 100)) / 100
    text = WORD * int(wanted / max(for_each, 1.0))
    tokens = await _tokens(asker, text)
    if not SHORT_TOKENS <= tokens <= wanted:
        return
    try:
        await asker.embed([text])
    except InputTooLarge as error:
        answers.long_text = LongText(error.tokens, error.limit)
    else:
        answers.long_text = LongText(tokens, None)


async def _tokens(asker: Asker, text: str) -> int:
    reply = await asker.post("/tokenize", {"content": text, "add_special": True})
    found = reply.get("tokens")
    return len(found) if isinstance(found, list) else 0
