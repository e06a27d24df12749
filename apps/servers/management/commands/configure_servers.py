from typing import Any

from django.core.management.base import BaseCommand

from apps.servers.services import configure_servers


class Command(BaseCommand):
    help = "Write the model servers named by LLM_BASE_URL and EMBED_BASE_URL into the database."

    def handle(self, *args: Any, **options: Any) -> None:
        for server in configure_servers():
            self.stdout.write(f"{server.name}: {server.base_url}")
