"""Actions on models that run in the background, and how they ended.

A page or a route only starts an action: a durable task of the server, the action and the model.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from apps.core.schemas.json_types import JsonObject
from apps.servers.loading.load_model import Action, check_action
from apps.servers.loading.task_kind import MODEL_ACTION
from apps.servers.models import Server
from apps.work import services as work
from apps.work.models import Task, TaskState

FAILURE_SHOWN_FOR = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """An action on a model that a person started, while it runs or after it failed."""

    action: Action
    since: datetime
    error: str = ""
    """The reason why it failed; empty while it runs."""
    wait_reason: str = ""
    """What it waits for; empty if it does not wait."""
    share: float | None = None
    """The loaded share of the model, 0 to 1; None where the server does not report it."""

    @property
    def state(self) -> str:
        return "failed" if self.error else "running"


def start_action(server: Server, model: str, action: Action) -> None:
    """Run an action in the background; unloading a model ends its loading or its download.

    Blocks for a moment.

    Raises:
        NotSupported, UnknownModel: see `check_action`.
    """
    if action is Action.UNLOAD and (task := _find(server, model, Action.DOWNLOAD)):
        work.cancel(task)  # its end stops the download at the server
        return
    model = check_action(server, model, action)
    with transaction.atomic():
        if action is Action.UNLOAD:
            for other in (Action.LOAD, Action.WARM):
                if task := _find(server, model, other):
                    work.cancel(task)
        options: JsonObject = {"server": server.pk, "model": model, "action": action.value}
        work.enqueue(MODEL_ACTION, _subject(server, model, action), options=options)


def model_activities() -> dict[int, dict[str, ModelActivity]]:
    """The current and recently failed actions of all servers, by server and model. Blocks."""
    latest: dict[tuple[int, str], Task] = {}
    for task in sorted(work.list_tasks(MODEL_ACTION), key=_started_last):
        latest[task.options["server"], task.options["model"]] = task
    found: dict[int, dict[str, ModelActivity]] = {}
    for (server, model), task in latest.items():
        if _is_shown(task):
            found.setdefault(server, {})[model] = _activity(task)
    return found


def _started_last(task: Task) -> tuple[bool, datetime]:
    return task.is_active, task.finished or task.enqueued_at


def _is_shown(task: Task) -> bool:
    if task.is_active or task.finished is None:
        return task.is_active
    return task.state == TaskState.FAILED and task.finished > timezone.now() - FAILURE_SHOWN_FOR


def _activity(task: Task) -> ModelActivity:
    return ModelActivity(
        action=Action(task.options["action"]),
        since=task.started or task.enqueued_at,
        error=task.error,
        wait_reason=work.wait_reason(task),
        share=task.done / task.total if task.total else None,
    )


def _find(server: Server, model: str, action: Action) -> Task | None:
    return work.find(MODEL_ACTION, _subject(server, model, action))


def _subject(server: Server, model: str, action: Action) -> str:
    return f"{server.pk}:{action}:{model}"[:300]
