from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"

    def ready(self) -> None:
        from apps.datasets import chat_tools  # models are there only now

        chat_tools.offer_all()
