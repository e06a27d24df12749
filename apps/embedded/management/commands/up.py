import sys
from typing import Any

from django.core.management.base import BaseCommand

from apps.embedded.__main__ import main


class Command(BaseCommand):
    help = "Start Workbench on this machine and run until Ctrl-C."
    requires_system_checks = ()  # `make check` runs them; here they would import every page

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(main())
