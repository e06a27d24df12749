"""Asks a server a few bounded questions, on idle slots alone.

At most MOST_QUESTIONS, each with a short answer, and TOTAL_SECONDS in all. As soon as a person or a
job needs the slots the doctor stops, and says so.
"""

import asyncio

from redis.exceptions import RedisError

from apps.llm.errors import LLMError
from apps.llm.permits import ModelInUse, NoSlot, SlotTaken
from apps.servers.services import Target
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.questions import chat, embeddings, liveness, prompts, streams
from apps.tuning.doctor.questions.asker import Asker, Question
from apps.tuning.doctor.reading import Reading

MOST_QUESTIONS = 13
TOTAL_SECONDS = 120.0

CHAT: tuple[Question, ...] = (
    prompts.ask_same_beginning_twice,
    chat.ask_with_tool,
    chat.ask_without_thinking,
    chat.ask_for_json,
    streams.ask_for_stream,
    streams.read_kinds_of_drafts,
    streams.ask_for_thought,
    streams.ask_and_leave,
)
EMBEDDINGS: tuple[Question, ...] = (
    embeddings.ask_for_vector,
    embeddings.ask_for_long_text,
)


async def ask_questions(target: Target, reading: Reading) -> Answers:
    """Ask all questions that suit the model. Never raises for a server that fails."""
    answers = Answers()
    asker = Asker(target, MOST_QUESTIONS)
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            await _ask(liveness.ask_for_token, asker, reading, answers)
            for question in EMBEDDINGS if reading.embeds else CHAT:
                if answers.silence is None:
                    await _ask(question, asker, reading, answers)
    except TimeoutError:
        answers.notes.append(f"Stopped after {TOTAL_SECONDS:.0f} s. Not all questions were asked.")
    except (NoSlot, SlotTaken, ModelInUse):
        answers.notes.append("No slot was idle. Not all questions were asked. Try again later.")
    except RedisError:
        answers.notes.append("Redis does not answer, so no slot could be held for a question.")
    answers.drafts = asker.drafts
    return answers


async def _ask(question: Question, asker: Asker, reading: Reading, answers: Answers) -> None:
    try:
        await question(asker, reading, answers)
    except LLMError as error:
        answers.notes.append(f"A question was not answered: {error}")
