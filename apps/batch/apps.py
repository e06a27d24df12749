from typing import Any

from django.apps import AppConfig


class BatchConfig(AppConfig):
    name = "apps.batch"

    def ready(self) -> None:
        from apps.core.accounts.removal import removing

        removing.connect(_stop_jobs)


def _stop_jobs(person: Any, **kwargs: Any) -> None:
    """Cancel the jobs of a person who is being deleted."""
    from apps.batch import services
    from apps.batch.models import ACTIVE, Batch

    for batch in Batch.objects.owned_by(person).filter(status__in=ACTIVE):
        services.cancel_batch(batch)
