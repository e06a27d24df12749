from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.accounts.login_links import create_login_link


class Command(BaseCommand):
    help = "Print a one-time login link."
    requires_system_checks = []  # they import every page, which takes seconds

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?", help="user to log in (default: the first admin)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            path = create_login_link(username=options["username"])
        except ObjectDoesNotExist as error:
            raise CommandError(str(error)) from error
        origin = settings.PUBLIC_ORIGIN or f"http://127.0.0.1:{settings.PORT}"
        self.stdout.write(f"{origin}{path}")
