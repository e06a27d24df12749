"""Checks of what a model that chats finds in its prompt cache. Pure."""

import re

from apps.tuning.doctor.answers import Answers, PromptRead
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading

_FORMAT = re.compile(r"""strftime_now\(\s*(['"])(.{1,200}?)\1""")
_TIME_OF_DAY = re.compile(r"%[-_0^#]?[HIkMSLfpPsTRrXcN]")


def check_prompt_cache(reading: Reading, answers: Answers) -> Finding | None:
    again = answers.again
    if not reading.is_llama_cpp or again is None or again.is_cached or _moves(answers):
        return None
    if_asked = answers.again_if_asked
    is_off = if_asked is not None and if_asked.is_cached
    return Finding(
        code="prompt-cache",
        severity=Severity.FAULT,
        what="Every message of a chat has the whole chat processed again.",
        evidence=(
            f"Of a prompt whose beginning the server had just processed, {again.cached:,} of "
            f"{again.tokens:,} tokens came from the prompt cache."
            + (
                " When the request itself asked for the cache, "
                f"{if_asked.cached:,} of {if_asked.tokens:,} did."
                if is_off and if_asked
                else ""
            )
        ),
        cost=_cost(again, if_asked if is_off else None),
        advice=(
            "The cache is off by default on this server. Start it without --no-cache-prompt."
            if is_off
            else "The reason is not known. Models with a sliding window or recurrent layers may "
            "not keep their prompts; another program may have used the slot."
        ),
        flags=("--cache-prompt",) if is_off else (),
    )


def check_moving_template(reading: Reading, answers: Answers) -> Finding | None:
    """The chat template writes another beginning each time, so that no cache fits."""
    rendered, again = answers.rendered, answers.again
    if rendered is None or not _moves(answers) or (again is not None and again.is_cached):
        return None
    return Finding(
        code="moving-template",
        severity=Severity.FAULT,
        what="The chat template writes the time into the beginning of each prompt.",
        evidence=(
            f"The same message was rendered twice, {rendered.apart:.1f} s apart. Of "
            f"{rendered.characters:,} characters the first {rendered.same:,} are the same."
        ),
        cost=_cost(again, None) if again is not None else NOT_MEASURED,
        advice="Use a template without the time of day, or with the time at its end.",
        flags=("--chat-template-file FILE",),
    )


def check_clock_in_template(reading: Reading, answers: Answers) -> Finding | None:
    """A template whose text changes within a day, though not while the doctor looked."""
    found = _FORMAT.findall(reading.template)
    formats = [text for _, text in found if _TIME_OF_DAY.search(text)]
    if not formats or _moves(answers):
        return None
    return Finding(
        code="clock-in-template",
        severity=Severity.ADVICE,
        what="The chat template contains the time of day.",
        evidence=f"It calls strftime_now with “{formats[0]}”.",
        advice="What follows the time in a prompt is processed again when it changes. Use a "
        "template without it, or with the time at its end.",
        flags=("--chat-template-file FILE",),
    )


def _moves(answers: Answers) -> bool:
    return answers.rendered is not None and answers.rendered.moves


def _cost(again: PromptRead, cached: PromptRead | None) -> str:
    text = f"{again.reprocessed:,} tokens processed again, first token after "
    text += f"{again.seconds:.2f} s"
    return f"{text} instead of {cached.seconds:.2f} s." if cached else f"{text}."
