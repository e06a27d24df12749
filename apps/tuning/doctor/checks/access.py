"""Checks of who may ask a server, and of what it shows. Pure."""

from apps.tuning.doctor.answers import Answers
from apps.tuning.doctor.findings import Finding, Severity
from apps.tuning.doctor.reading import FOREIGN_ORIGIN, Reading


def check_key(reading: Reading, answers: Answers) -> Finding | None:
    """No key, and any web page may ask from a browser."""
    if not reading.is_keyless or reading.allowed_origin not in {"*", FOREIGN_ORIGIN}:
        return None
    return Finding(
        code="no-key",
        severity=Severity.FAULT,
        what="Any web page that is open in a browser near this server can use it.",
        evidence=(
            "It answered without a key, and allowed the answer to a page of "
            f"{FOREIGN_ORIGIN} (Access-Control-Allow-Origin: {reading.allowed_origin})."
        ),
        advice="Set a key, and enter it under Servers. Or allow your own origins alone.",
        flags=("--api-key-file FILE",),
    )


def check_metrics(reading: Reading, answers: Answers) -> Finding | None:
    if reading.shows_metrics is not False:
        return None
    return Finding(
        code="no-metrics",
        severity=Severity.ADVICE,
        what="The server does not count its tokens and seconds for anybody to read.",
        evidence="/props reports endpoint_metrics: false.",
        advice="Turn the route /metrics on. It costs nothing while nobody reads it.",
        flags=("--metrics",),
    )


def check_slots_shown(reading: Reading, answers: Answers) -> Finding | None:
    if reading.shows_slots is not False:
        return None
    return Finding(
        code="no-slots",
        severity=Severity.ADVICE,
        what="The server does not show what its slots do.",
        evidence="/props reports endpoint_slots: false.",
        advice="Start it without --no-slots. The page Servers can then show each slot.",
        flags=("--slots",),
    )
