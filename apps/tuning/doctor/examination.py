"""What was found at one model of a server, and its JSON. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from apps.tuning.doctor.findings import Finding
from apps.tuning.doctor.measurements import Measurement


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found at one model; `notes` say what could not be examined."""

    server: str
    model: str = ""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_examined: bool = True
    measurements: list[Measurement] = field(default_factory=list)
    build: str = ""
    """"": not reported."""
    command: str = ""
    """The command line that it was started with, without keys; "": not reported."""


def to_json(examinations: Sequence[Examination]) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = _ADAPTER.dump_python(list(examinations), mode="json")
    return stored


def from_json(stored: list[dict[str, Any]]) -> list[Examination]:
    return _ADAPTER.validate_python(stored)


_ADAPTER = TypeAdapter(list[Examination])
