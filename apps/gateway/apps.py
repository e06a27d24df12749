from typing import Any

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "apps.gateway"

    def ready(self) -> None:
        from apps.batch.handlers import Handler, Listing, register_handler
        from apps.core.accounts.removal import removing
        from apps.work import services as work

        removing.connect(_remove_files)
        work.register("gateway.batch.check", "apps.gateway.batches.check_task.run")
        work.register("gateway.batch.finish", "apps.gateway.batches.finish_task.run")
        spec = "apps.gateway.batches.batch_spec"
        register_handler(
            "gateway.batch",
            Handler(
                "apps.gateway.batches.request_row.run_row",
                f"{spec}.read_spec",
                row_tokens=f"{spec}.row_tokens",
                lane=f"{spec}.row_lane",
                asks_for_slots=f"{spec}.asks_for_slots",
                loses_work=f"{spec}.loses_work",
                listing=Listing("Batches of programs", "gateway:batch"),
            ),
        )


def _remove_files(person: Any, **kwargs: Any) -> None:
    """Remove the files of a person who is being deleted, which no cascade reaches."""
    from apps.gateway.files.store import remove_file
    from apps.gateway.models import ProgramFile

    for file in ProgramFile.objects.owned_by(person):
        remove_file(file)
