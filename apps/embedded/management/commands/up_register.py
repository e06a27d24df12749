from typing import Any

from django.core.management.base import BaseCommand

from apps.core.login_links import create_login_link
from apps.llm.services import configure_servers


class Command(BaseCommand):
    help = "Used by `up`: writes its model servers into the database and prints a login path."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        configure_servers()
        self.stdout.write(create_login_link())
