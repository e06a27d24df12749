"""The first question: does a server that says it is ready return a token at all?"""

import asyncio
import time

from apps.llm.errors import BadRequest, LLMError, NotSupported, Stalled
from apps.servers.services import record_error
from apps.tuning.doctor.answers import Answers, Silence
from apps.tuning.doctor.questions.asker import Asker
from apps.tuning.doctor.reading import Reading
from apps.tuning.doctor.slots_seen import SlotsSeen, compare_slots

# The prompt is of a few words: machines on which a whole model is on a disk are done by then.
SILENT_SECONDS = 60.0
# A slot that works has written or processed something in this time.
LOOK_SECONDS = 2.0
TEXT = "Say A."


async def ask_for_token(asker: Asker, reading: Reading, answers: Answers) -> None:
    """Wait for one token, or for one vector, and look at the slots where none comes.

    The server then counts as stuck for everybody, unless others may be using its slots.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(SILENT_SECONDS):
            if reading.embeds:
                await asker.embed([TEXT])
            else:
                await asker.chat(TEXT, 1)
    except (BadRequest, NotSupported):  # an answer, too; another question says what it means
        answers.has_token = True
        return
    except TimeoutError:
        seconds = time.monotonic() - began
    else:
        answers.has_token = True
        return
    answers.silence = Silence(seconds, await _look_at_slots(asker, reading))
    if answers.silence.is_stuck:
        error = Stalled("The doctor’s question was not answered.")
        await record_error(asker.target.server, error, asker.target.model)
        return
    answers.notes.append(
        f"No token came within {seconds:.0f} s. "
        + (
            "All slots work for other programs."
            if answers.silence.slots is SlotsSeen.BUSY
            else "The server does not show its slots, so other programs may be using them."
        )
        + " Nothing else was asked."
    )


async def _look_at_slots(asker: Asker, reading: Reading) -> SlotsSeen:
    if not reading.has_own_routes or not reading.shows_slots:
        return SlotsSeen.UNKNOWN
    try:
        before = await asker.get("/slots")
        await asyncio.sleep(LOOK_SECONDS)
        return compare_slots(before, await asker.get("/slots"))
    except LLMError:
        return SlotsSeen.SILENT
