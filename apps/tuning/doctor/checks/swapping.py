"""Checks of how often a router or llama-swap loads models. Pure."""

from apps.servers.models import Kind
from apps.tuning.doctor.amount import Amount, Unit
from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import Reading
from apps.tuning.hooks import HOURS, Swaps

# In ten minutes; as the alert has it.
MOST_LOADS = 6
FEWEST_MODELS = 2


def check_swapping(reading: Reading, answers: Answers) -> Finding | None:
    """Requests for two models that take turns, so that each turn loads one."""
    swaps = reading.swaps
    if swaps.most <= MOST_LOADS:
        return None
    return Finding(
        code="swapping",
        severity=Severity.FAULT,
        what="Models are loaded again and again, in turns.",
        evidence=(
            f"In the last {HOURS} hours models were loaded {swaps.loads:,} times or more often,"
            f" {swaps.most:,} times within ten minutes. {swaps.requests:,} requests were sent in"
            " the time of these loads."
        ),
        cost=_cost(swaps),
        measured=Amount(value=swaps.loads, unit=Unit.NUMBER),
        advice="Use one model, or keep those in memory together that take turns; manage.py plan "
        "says whether both fit.",
        configuration=_configuration(reading.kind, swaps),
    )


def _cost(swaps: Swaps) -> str:
    text = f"{swaps.loads:,} loads"
    if swaps.seconds is None:
        return f"{text}."
    text += f". First tokens came after {swaps.seconds:.1f} s on average"
    usual = f", after {swaps.usual_seconds:.1f} s otherwise" if swaps.usual_seconds else ""
    return f"{text}{usual}."


def _configuration(kind: str, swaps: Swaps) -> str:
    """What keeps the models in memory that were asked most."""
    if len(swaps.models) < FEWEST_MODELS:
        return ""
    if kind == Kind.ROUTER:
        return f"--models-max {len(swaps.models)}"
    if kind == Kind.LLAMA_SWAP:
        members = "\n".join(f'      - "{model}"' for model in swaps.models)
        return f"groups:\n  together:\n    swap: false\n    members:\n{members}"
    return ""
