from django.apps import AppConfig


class GenerationConfig(AppConfig):
    name = "apps.generation"

    def ready(self) -> None:
        from apps.batch import handlers

        handlers.register(
            "generation",
            "apps.generation.rows.write_row",
            row_tokens="apps.generation.rows.row_tokens",
        )
