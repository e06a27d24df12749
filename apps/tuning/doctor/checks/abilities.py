"""Checks of what a model that chats can do: tools and JSON. Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading


def check_tools(reading: Reading, answers: Answers) -> Finding | None:
    """Tools that are refused, or that never reach the model."""
    flags: tuple[str, ...]
    if answers.tools_refused:
        evidence = f"The server rejected a request with one tool: {answers.tools_refused}"
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


def check_schema(reading: Reading, answers: Answers) -> Finding | None:
    """Text that breaks the schema of its request, in an answer that is complete."""
    answer = answers.schema
    if answer is None or answer.finish_reason != "stop" or answer.fits_schema:
        return None
    return Finding(
        code="schema-ignored",
        severity=Severity.FAULT,
        what="The server does not enforce JSON schemas.",
        evidence=f"A request with a schema was answered with: {answer.text[:80]!r}",
        cost="Answers of jobs may be invalid, and are asked for again.",
        advice="Look for a proxy in front of the server that drops response_format.",
    )
