from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from apps.datasets.limits import TextLimit
    from apps.datasets.models import Dataset


class ClassifiersConfig(AppConfig):
    name = "apps.classifiers"

    def ready(self) -> None:
        from apps.batch import handlers
        from apps.datasets import limits, near

        handlers.register(
            "classifiers.chat_labels",
            "apps.classifiers.chat_labels.label_row",
            row_tokens="apps.classifiers.chat_labels.row_tokens",
        )
        near.register(_look_for_near_copies)
        limits.register(_text_limit)


# Imported when they are called: at the start of every process numpy would cost a tenth of a second.
def _look_for_near_copies(dataset: "Dataset") -> None:
    from apps.classifiers import tasks

    tasks.wake_near_copies(dataset.pk)


def _text_limit() -> "TextLimit | None":
    from apps.classifiers import near_copies

    return near_copies.text_limit()
