"""Checks of a model that chats. Pure."""

import json
import re

from apps.servers.models import Use
from apps.tuning.doctor.answers import COLOURS, Answer, Answers, PromptRead
from apps.tuning.doctor.findings import NOT_MEASURED, Finding, Severity
from apps.tuning.doctor.reading import Reading

# A system prompt with two tools and a short question take about as much.
SMALLEST_CONTEXT = 1_024
ADVISED_CONTEXT = 4_096
JOB_SLOTS = 4

_FORMAT = re.compile(r"""strftime_now\(\s*(['"])(.{1,200}?)\1""")
_TIME_OF_DAY = re.compile(r"%[-_0^#]?[HIkMSLfpPsTRrXcN]")


def check_context(reading: Reading, answers: Answers) -> Finding | None:
    """Slots that are too small for a chat, of a model that has room for more."""
    context, slots = reading.context, reading.slots
    if reading.embeds or not context or not slots or context >= SMALLEST_CONTEXT:
        return None
    if reading.context_trained and reading.context_trained <= context:
        return None
    each = min(ADVISED_CONTEXT, reading.context_trained or ADVISED_CONTEXT)
    return Finding(
        code="small-context",
        severity=Severity.FAULT,
        what=f"A prompt and its answer must fit into {context:,} tokens.",
        evidence=f"The server reports {slots} slots of {context:,} tokens each.",
        cost=(
            f"A short question with one tool, {answers.tool_prompt_tokens:,} tokens, did not fit."
            if answers.tool_prompt_tokens
            else NOT_MEASURED
        ),
        advice="-c is shared out among the slots. Give it as many tokens as all slots need, or "
        "start fewer slots. It takes memory: manage.py plan says how much.",
        flags=(f"-c {slots * each}", f"-np {slots}"),
    )


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


def check_tools(reading: Reading, answers: Answers) -> Finding | None:
    """Tools that are refused, or that never reach the model."""
    flags: tuple[str, ...]
    if answers.tools_refused:
        evidence = f"It refused a request with one tool: {answers.tools_refused}"
        cost = "Every request with tools fails."
        flags = ("--jinja", "--chat-template-file FILE")
    elif answers.shows_tools is False:
        evidence = "The prompt of a request with one tool does not contain the tool’s name."
        if reading.takes_tools is False:
            evidence += " /props reports supports_tools: false."
        cost = "The model cannot call any tool."
        flags = ("--chat-template-file FILE",)
    else:
        return None
    return Finding(
        code="no-tools",
        severity=Severity.FAULT,
        what="The model is not told of its tools.",
        evidence=evidence,
        cost=cost,
        advice="Use a chat template that knows tools, if the model was trained for them.",
        flags=flags,
    )


def check_thinking(reading: Reading, answers: Answers) -> Finding | None:
    answer = answers.thinking_off
    if answer is None:
        return None
    is_all_thought = not answer.text
    if not answer.thought.strip() and not answer.text.lstrip().startswith("<think>"):
        return None
    return Finding(
        code="thinks-anyway",
        severity=Severity.FAULT,
        what="The model thinks although a request turns thinking off.",
        evidence="A request with enable_thinking: false and reasoning_effort: none was answered "
        "with a thought.",
        cost=(
            f"All {answer.tokens} tokens that the answer was allowed went into the thought."
            if is_all_thought
            else NOT_MEASURED
        ),
        advice="Use a chat template with a switch. Or have the server end each thought after its "
        "first token; then no request gets one.",
        flags=("--reasoning-budget 1",),
    )


def check_schema(reading: Reading, answers: Answers) -> Finding | None:
    """Text that breaks the schema of its request, in an answer that is complete."""
    answer = answers.schema
    if answer is None or answer.finish_reason != "stop" or _fits_schema(answer):
        return None
    return Finding(
        code="schema-ignored",
        severity=Severity.FAULT,
        what="The server does not enforce JSON schemas.",
        evidence=f"A request with a schema was answered with: {answer.text[:80]!r}",
        cost="Answers of jobs may be invalid, and are asked for again.",
        advice="Look for a proxy in front of the server that drops response_format.",
    )


def check_one_slot(reading: Reading, answers: Answers) -> Finding | None:
    """One slot, on the server that jobs use."""
    if reading.embeds or reading.slots != 1 or Use.GENERATION not in reading.uses:
        return None
    context = reading.context
    return Finding(
        code="one-slot",
        severity=Severity.ADVICE,
        what="Jobs get one answer at a time, and wait while anybody chats.",
        evidence="The server reports 1 slot, and is the default for generation.",
        advice="Start it with more slots, and a -c for all of them together.",
        flags=(f"-np {JOB_SLOTS}", *([f"-c {JOB_SLOTS * context}"] if context else [])),
    )


def _moves(answers: Answers) -> bool:
    """True if the second half of a prompt, at least, changes with the time."""
    rendered = answers.rendered
    return rendered is not None and 2 * rendered.same < rendered.characters


def _cost(again: PromptRead, cached: PromptRead | None) -> str:
    text = f"{again.tokens - again.cached:,} tokens processed again, first token after "
    text += f"{again.seconds:.2f} s"
    return f"{text} instead of {cached.seconds:.2f} s." if cached else f"{text}."


def _fits_schema(answer: Answer) -> bool:
    try:
        found = json.loads(answer.text)
    except ValueError:
        return False
    return isinstance(found, dict) and [*found] == ["colour"] and found["colour"] in COLOURS
