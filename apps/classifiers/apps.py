from django.apps import AppConfig


class ClassifiersConfig(AppConfig):
    name = "apps.classifiers"

    def ready(self) -> None:
        from apps.batch import handlers

        handlers.register(
            "classifiers.chat_labels",
            "apps.classifiers.chat_labels.label_row",
            row_tokens="apps.classifiers.chat_labels.row_tokens",
        )
