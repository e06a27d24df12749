"""Calls `manage.py doctor`."""

from io import StringIO

from django.core.management import call_command


def doctor(*arguments: str) -> tuple[int, str, str]:
    """Exit code, what was found, and notes."""
    out, notes, code = StringIO(), StringIO(), 0
    try:
        call_command("doctor", *arguments, stdout=out, stderr=notes)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, out.getvalue(), notes.getvalue()
