from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.models import ApiKey


class Command(BaseCommand):
    help = "Create an API key and print it once."
    requires_system_checks = []  # they import every page, which takes seconds

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the key is for, such as 'nightly import'")
        parser.add_argument("--user", help="owner of the key (default: the first admin)")

    def handle(self, *args: Any, **options: Any) -> None:
        users = User.objects.filter(is_active=True)
        username = options["user"]
        user = (
            users.filter(username=username) if username else users.filter(is_superuser=True)
        ).first()
        if user is None:
            raise CommandError(
                f"No active user {username!r}."
                if username
                else "No admin yet. Start Workbench once with `make run`."
            )
        _, token = ApiKey.issue(user=user, name=options["name"])
        self.stdout.write(token)
