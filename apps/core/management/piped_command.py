"""A command whose output is meant for other programs too."""

import os
import signal
import sys
from typing import Any

from django.core.management.base import BaseCommand

CLOSED = 128 + signal.SIGPIPE
"""The exit code, as a shell reports it of a program that writes into a closed pipe."""


class PipedCommand(BaseCommand):
    """Ends quietly when the reader of its output has enough, as `head` has."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            try:
                return super().execute(*args, **options)
            finally:
                sys.stdout.flush()  # short output meets the closed pipe only here
        except BrokenPipeError:
            # Python flushes once more at its end, and would report the error of that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(CLOSED)
