import logging
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from apps.embedded.errors import StartError
from apps.embedded.options import from_settings
from apps.embedded.start import start

OTHERS_MAY_NOTHING = 0o077


class Command(BaseCommand):
    help = "Start the whole workbench on this machine and keep it running until Ctrl-C."
    requires_system_checks = ()  # `make check` runs them; here they would import every page

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(OTHERS_MAY_NOTHING)
        logging.getLogger().setLevel(logging.WARNING)  # the terminal is for what we have to say
        try:
            start(from_settings(), say=self._say, announce=self._announce)
        except StartError as error:
            self._say(str(error))
            sys.exit(1)
        except KeyboardInterrupt:  # before the supervisor listens to signals
            sys.exit(130)

    def _say(self, line: str) -> None:
        self.stderr.write(line)
        self.stderr.flush()

    def _announce(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
