"""What the doctor measured of a server, so that a mended one can be compared with it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Amount):
    name: str
    is_less_better: bool = False


def measurements_of(reading: Reading, answers: Answers) -> list[Measurement]:
    """Return all that was measured, of a healthy server too; what is not known is left out."""
    return [
        *_of_slots(reading),
        *_of_prompts(answers),
        *_of_thoughts(answers),
        *_of_streams(answers),
        *_of_embeddings(answers),
    ]


def _of_slots(reading: Reading) -> Iterator[Measurement]:
    if reading.slots:
        yield Measurement(name="Slots", value=reading.slots, unit=Unit.NUMBER)
    if reading.context:
        yield Measurement(name="Context per slot", value=reading.context, unit=Unit.TOKENS)


def _of_prompts(answers: Answers) -> Iterator[Measurement]:
    if answers.first is not None:
        yield Measurement(
            name="First token of a new prompt",
            value=answers.first.seconds,
            unit=Unit.SECONDS,
            is_less_better=True,
        )
    if (again := answers.again) is not None:
        yield Measurement(
            name="First token of a known prompt",
            value=again.seconds,
            unit=Unit.SECONDS,
            is_less_better=True,
        )
        yield Measurement(
            name="Known prompt, from the cache",
            value=again.cached / again.tokens if again.tokens else 0.0,
            unit=Unit.SHARE,
        )
        yield Measurement(
            name="Known prompt, processed again",
            value=again.reprocessed,
            unit=Unit.TOKENS,
            is_less_better=True,
        )
    if (turn := answers.next_turn) is not None:
        yield Measurement(
            name="Second message, processed again",
            value=turn.reprocessed,
            unit=Unit.TOKENS,
            is_less_better=True,
        )


def _of_thoughts(answers: Answers) -> Iterator[Measurement]:
    if (answer := answers.thinking_off) is not None:
        yield Measurement(
            name="Thought, with thinking off",
            value=answer.tokens if answer.has_thought else 0,
            unit=Unit.TOKENS,
            is_less_better=True,
        )
    if (thought := answers.thought) is not None:
        yield Measurement(
            name="Thought before an answer",
            value=thought.tokens,
            unit=Unit.TOKENS,
            is_less_better=True,
        )


def _of_streams(answers: Answers) -> Iterator[Measurement]:
    if (arrival := answers.arrival) is not None:
        yield Measurement(
            name="Delay of a streamed token",
            value=arrival.delay if arrival.is_late else 0.0,
            unit=Unit.SECONDS,
            is_less_better=True,
        )
        yield Measurement(
            name="Generation",
            value=arrival.speed,
            unit=Unit.TOKENS_PER_SECOND,
        )
    if answers.drafts.drafted:
        yield Measurement(
            name="Drafted tokens accepted",
            value=answers.drafts.accepted / answers.drafts.drafted,
            unit=Unit.SHARE,
        )
    if (leaving := answers.leaving) is not None:
        yield Measurement(
            name="Written after its reader left",
            value=leaving.tokens if leaving.is_ignored else 0,
            unit=Unit.TOKENS,
            is_less_better=True,
        )


def _of_embeddings(answers: Answers) -> Iterator[Measurement]:
    if answers.norm is not None:
        yield Measurement(name="Length of a vector", value=answers.norm, unit=Unit.NUMBER)
    if (long := answers.long_text) is not None:
        yield Measurement(
            name="Longest text embedded", value=long.limit or long.tokens, unit=Unit.TOKENS
        )
