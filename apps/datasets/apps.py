from typing import Any

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"

    def ready(self) -> None:
        from apps.core.accounts.removal import removing
        from apps.datasets import chat_tools  # models are there only now
        from apps.datasets.models import TaskKind
        from apps.work import services as work

        chat_tools.offer_all()
        work.register(TaskKind.IMPORT, "apps.datasets.imports.importing.run_import")
        work.register(TaskKind.CHANGE, "apps.datasets.rows.bulk_edits.run_change")
        work.register(TaskKind.REMOVAL, "apps.datasets.rows.removal.finish_removal")
        removing.connect(_delete_uploads)


def _delete_uploads(person: Any, **kwargs: Any) -> None:
    """Delete uploads with their files, which the database does not cascade to."""
    from apps.datasets.imports.uploads import remove_upload
    from apps.datasets.models import Upload

    for upload in Upload.objects.owned_by(person):
        remove_upload(upload)
