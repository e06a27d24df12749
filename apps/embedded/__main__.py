"""`python -m apps.embedded`, which `make run` starts: the same as `manage.py up`, but sooner.

Django imports every app before it runs a command. Here the web server already starts before that,
and unreadable settings end in one sentence instead of a traceback.
"""

import logging
import os
import sys

PRIVATE_UMASK = 0o077


def main() -> int:
    os.umask(PRIVATE_UMASK)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    try:
        return _start()
    except KeyboardInterrupt:  # before the supervisor listens to signals
        return 130


def _start() -> int:
    # Imported here: Ctrl-C works also while these load.
    from django.core.exceptions import ImproperlyConfigured

    from apps.embedded.errors import StartError
    from apps.embedded.options import from_settings
    from apps.embedded.start import start

    try:
        options = from_settings()
    except ImproperlyConfigured as error:
        return _refuse(str(error))
    except OSError as error:  # the settings keep a secret in the data folder
        return _refuse(
            f"The data folder is not writable ({error.strerror}: {error.filename})."
            " Choose another with WORKBENCH_DATA."
        )
    logging.getLogger().setLevel(logging.WARNING)  # the terminal shows our own messages only
    try:
        start(options, say=_say, announce=_announce)
    except StartError as error:
        return _refuse(str(error))
    return 0


def _refuse(reason: str) -> int:
    _say(reason)
    return 1


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _announce(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
