from django.apps import AppConfig


class GenerationConfig(AppConfig):
    name = "apps.generation"

    def ready(self) -> None:
        from apps.batch import handlers
        from apps.generation.rows import HANDLER, write_row

        handlers.register(HANDLER, write_row)
