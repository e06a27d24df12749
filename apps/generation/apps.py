from typing import Any

from django.apps import AppConfig


class GenerationConfig(AppConfig):
    name = "apps.generation"

    def ready(self) -> None:
        from apps.batch.handlers import Handler, register_handler
        from apps.core.first_page import Door, register_door

        _offer_tools()
        register_door(Door("generation/_first_door.html", _has_begun, _first_card, order=3))
        register_handler(
            "generation",
            Handler(
                run_row="apps.generation.rows.generate_row.run_row",
                read_spec="apps.generation.rows.generate_row.read_spec",
                row_tokens="apps.generation.rows.generate_row.row_tokens",
                shared_request="apps.generation.rows.generate_row.shared_request",
                post_process="apps.generation.rows.semantic_filter.post_process",
            ),
        )


def _has_begun(user: Any) -> bool:
    from apps.generation.models import Job

    return Job.objects.owned_by(user).exists()


def _first_card(user: Any) -> dict[str, Any]:
    from apps.servers.services import NoServer, Use, default_target

    try:
        default_target(Use.GENERATION)
    except NoServer as error:
        return {"problem": str(error)}
    return {"problem": ""}


def _offer_tools() -> None:
    from apps.core.tools import Tool, parameters, register

    register(
        Tool(
            name="start_generation_job",
            title="Start a generation job",
            description="Starts a job that writes synthetic rows by one of this person's saved "
            "recipes. A name that does not exist is answered with those that do.",
            parameters=parameters(
                ["recipe", "rows"],
                recipe={"type": "string", "description": "The name of a saved recipe."},
                rows={"type": "integer", "minimum": 1, "maximum": 100_000},
                name={"type": "string", "maxLength": 200, "description": "What to call the job."},
            ),
            run="apps.generation.chat_tools.start_generation_job",
            needs_approval=True,
        )
    )
