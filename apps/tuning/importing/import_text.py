"""Imported servers as text for a terminal (pure)."""

from collections.abc import Iterable, Iterator

from apps.tuning.importing.imported import ImportedServer
from apps.tuning.planner.hardware import Hardware
from apps.tuning.planner.plan_text import NOT_REPORTED, part_line, size_text


def imported_lines(
    servers: Iterable[ImportedServer], hardware: Hardware | None = None
) -> Iterator[str]:
    for server in servers:
        yield f"{server.name}: {server.slots}"
        yield f"  Model: {server.model or NOT_REPORTED}"
        for setting in server.settings:
            yield f"  {setting.safe_text}{f': {setting.meaning}' if setting.meaning else ''}"
        yield from map(part_line, server.parts)
        yield f"  {memory_line(server, hardware)}"
        yield from (f"  Error: {problem}" for problem in server.problems)
        yield from (f"  Warning: {warning}" for warning in server.warnings)
        yield ""


def memory_line(server: ImportedServer, hardware: Hardware | None) -> str:
    """Say in a sentence what it needs, and whether the hardware has it."""
    if not server.parts:
        return f"Memory: {NOT_REPORTED}. Name the model’s file to compute it."
    needed = size_text(server.needed_bytes)
    if any(part.bytes is None for part in server.parts):
        needed += f", and what is {NOT_REPORTED}"
    if hardware is None:
        return f"Memory: {needed}"
    fits = server.needed_bytes <= hardware.available_bytes
    there = size_text(hardware.available_bytes)
    return f"Memory: {needed} of {there}: {'fits' if fits else 'does not fit'}"
