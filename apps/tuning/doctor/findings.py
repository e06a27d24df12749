"""A finding: a fault of a server, with what shows it, what it costs and what mends it. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from apps.tuning.doctor.amount import Amount

NOT_MEASURED = "not measured"


class Severity(StrEnum):
    FAULT = "fault"
    """Something does not work, works wrongly or costs time with every request."""
    ADVICE = "advice"
    """It works, and would work better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """All texts are sentences for the person who runs the server."""

    code: str
    severity: Severity
    what: str
    evidence: str
    """What was read from the server, or measured with requests."""
    cost: str = NOT_MEASURED
    measured: Amount | None = None
    """The largest figure of the cost; None: not measured."""
    advice: str
    flags: tuple[str, ...] = ()
    """Flags of llama-server to start it with instead; empty where no flag mends it."""
    configuration: str = ""
    """What mends it in the configuration of a program in front of the model's server."""


def finding_lines(finding: Finding) -> list[str]:
    """The lines of a finding in a terminal."""
    lines = [
        f"{finding.severity.capitalize()}: {finding.what} [{finding.code}]",
        f"  Evidence: {finding.evidence}",
        f"  Cost: {finding.cost}",
        f"  Advice: {finding.advice}",
    ]
    if finding.flags:
        lines.append(f"  Flags: {' '.join(finding.flags)}")
    if finding.configuration:
        lines += [
            "  Configuration:",
            *(f"    {line}" for line in finding.configuration.splitlines()),
        ]
    return lines
