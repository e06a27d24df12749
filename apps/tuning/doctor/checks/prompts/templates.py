"""Checks of chat templates that write other beginnings, so that no cache fits. Pure."""

import re

from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.checks.prompts.cache import cost_of
from apps.tuning.doctor.checks.prompts.reasons import cache_reasons
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading

ANOTHER_TEMPLATE = "--chat-template-file FILE"
_FORMAT = re.compile(r"""strftime_now\(\s*(['"])(.{1,200}?)\1""")
_TIME_OF_DAY = re.compile(r"%[-_0^#]?[HIkMSLfpPsTRrXcN]")


def check_moving_template(reading: Reading, answers: Answers) -> Finding | None:
    """The chat template writes another beginning each time."""
    rendered, again = answers.rendered, answers.again
    if rendered is None or not rendered.moves or (again is not None and again.is_cached):
        return None
    return Finding(
        code="moving-template",
        severity=Severity.FAULT,
        what="The chat template writes the time into the beginning of each prompt.",
        evidence=(
            f"The same message was rendered twice, {rendered.apart:.1f} s apart. Of "
            f"{rendered.characters:,} characters the first {rendered.same:,} are the same."
        ),
        cost=cost_of(again, None) if again is not None else NOT_MEASURED,
        measured=Amount(value=again.reprocessed, unit=Unit.TOKENS) if again is not None else None,
        advice="Use a template without the time of day, or with the time at its end.",
        flags=(ANOTHER_TEMPLATE,),
    )


def check_clock_in_template(reading: Reading, answers: Answers) -> Finding | None:
    """A template whose text changes within a day, though not while the doctor looked."""
    found = _FORMAT.findall(reading.template)
    formats = [text for _, text in found if _TIME_OF_DAY.search(text)]
    if not formats or (answers.rendered is not None and answers.rendered.moves):
        return None
    return Finding(
        code="clock-in-template",
        severity=Severity.ADVICE,
        what="The chat template contains the time of day.",
        evidence=f"It calls strftime_now with “{formats[0]}”.",
        advice="What follows the time in a prompt is processed again when it changes. Use a "
        "template without it, or with the time at its end.",
        flags=(ANOTHER_TEMPLATE,),
    )


def check_moving_history(reading: Reading, answers: Answers) -> Finding | None:
    """A second message for which the first is processed again, though the cache works."""
    again, turn, turns = answers.again, answers.next_turn, answers.turns
    if again is None or turn is None or not again.is_cached or turn.is_cached:
        return None
    evidence = [
        f"Of a chat that went on with a second message, {turn.cached:,} of {turn.tokens:,} tokens "
        "came from the prompt cache."
    ]
    if turns is not None and turns.moves:
        evidence.append(
            f"The template writes earlier messages in another way then: of {turns.characters:,} "
            f"characters up to the end of the first message the first {turns.same:,} are the same."
        )
    elif strips_reasoning(reading, answers):
        evidence.append("The template leaves the reasoning of the earlier answer out.")
    reasons = cache_reasons(reading)
    return Finding(
        code="moving-history",
        severity=Severity.FAULT,
        what="Each further message of a chat has all before it processed again.",
        evidence=" ".join([*evidence, *(reason.text for reason in reasons)]),
        cost=cost_of(turn, again),
        measured=Amount(value=turn.reprocessed, unit=Unit.TOKENS),
        advice="Use a template that only appends to what it wrote before.",
        flags=(*_template_flags(reading, answers), *(reason.flag for reason in reasons)),
    )


def check_stripped_reasoning(reading: Reading, answers: Answers) -> Finding | None:
    """A template that leaves earlier thoughts out: each answer is processed with the next one."""
    turn = answers.next_turn
    if not strips_reasoning(reading, answers) or turn is None or not turn.is_cached:
        return None
    return Finding(
        code="stripped-reasoning",
        severity=Severity.ADVICE,
        what="The chat template leaves the reasoning of earlier answers out.",
        evidence="A chat with one answer and its reasoning was rendered. The reasoning is not in "
        "the prompt, so what follows it is not where the server wrote it.",
        cost=f"{turn.reprocessed:,} tokens processed again with the second message. In real chats "
        "it is each answer, once.",
        measured=Amount(value=turn.reprocessed, unit=Unit.TOKENS),
        advice="Keep the reasoning if the model was trained for that: agents with many rounds of "
        "tools are then faster. Else leave it as it is.",
        flags=_template_flags(reading, answers),
    )


def strips_reasoning(reading: Reading, answers: Answers) -> bool:
    """True if the model thinks, and its template does not write what it thought before."""
    turns = answers.turns
    return bool(reading.thinking.thinks) and turns is not None and not turns.keeps_reasoning


def _template_flags(reading: Reading, answers: Answers) -> tuple[str, ...]:
    if answers.turns is None:
        return ()
    if reading.keeps_reasoning and not answers.turns.moves:
        return ("--reasoning-preserve",)
    return (ANOTHER_TEMPLATE,)
