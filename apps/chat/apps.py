from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class ChatConfig(AppConfig):
    name = "apps.chat"

    def ready(self) -> None:
        post_migrate.connect(_create_search_index, sender=self)
        from apps.chat.composer import starters  # models are there only now
        from apps.chat.conversation_list import list_rows
        from apps.chat.knowledge.documents import KIND
        from apps.chat.tools import builtin
        from apps.core.context import register_news
        from apps.core.first_page import register_door
        from apps.monitoring.services import register_gauge
        from apps.work import services as work

        builtin.register_all()
        work.register(KIND, "apps.chat.knowledge.import_task.run")
        register_news("chat:index", list_rows.needs_attention)
        register_door(starters.FIRST_DOOR)
        register_gauge("open_streams", "Answers that are not finished.", _open_streams)


def _create_search_index(sender: AppConfig, using: str, **kwargs: Any) -> None:
    from apps.chat.conversation_list import search  # models are there only now

    search.create_index(connections[using])


def _open_streams() -> int:
    from apps.chat.models import Message  # models are there only now

    return Message.objects.unfinished().count()
