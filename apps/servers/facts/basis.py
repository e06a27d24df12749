"""How a fact about a server is known: reported, measured, stated or assumed (pure)."""

from enum import StrEnum


class Basis(StrEnum):
    REPORTED = "reported"
    """By the server."""
    MEASURED = "measured"
    """By Workbench, on its requests."""
    STATED = "stated"
    """By a person or the settings."""
    ASSUMED = "assumed"


_STATED = ("set ", "the settings")
_MEASURED = ("measured", "observed", "the server's answer", "the server refused")


def basis_of(source: str) -> Basis:
    """Return how a fact with this source is known."""
    if not source or source.startswith("assumed"):
        return Basis.ASSUMED
    if source.startswith(_STATED):
        return Basis.STATED
    return Basis.MEASURED if source.startswith(_MEASURED) else Basis.REPORTED


def describe(source: str) -> str:
    """Return the basis and the source as one phrase: "Reported: the server's /props"."""
    basis = basis_of(source)
    if basis is Basis.STATED:
        return "Set in the settings" if source == "the settings" else _capitalised(source)
    if basis is Basis.ASSUMED:
        return _capitalised(source or basis)
    detail = source.removeprefix("observed: ").removeprefix("measured").removeprefix(": ")
    return _capitalised(f"{basis}: {detail}" if detail else basis)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
