from typing import Any

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"

    def ready(self) -> None:
        from apps.core.accounts.removal import removing
        from apps.datasets import chat_tools  # models are there only now

        chat_tools.offer_all()
        removing.connect(_delete_uploads)


def _delete_uploads(person: Any, **kwargs: Any) -> None:
    """Delete uploads with their files, which the database does not cascade to."""
    from apps.datasets.imports.uploads import remove_upload
    from apps.datasets.models import Upload

    for upload in Upload.objects.owned_by(person):
        remove_upload(upload)
