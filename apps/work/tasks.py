from celery import shared_task

from apps.work import services


@shared_task(name="apps.work.tasks.run_task")
def run_task(task_id: int) -> None:
    services.run(task_id)


@shared_task(name="apps.work.tasks.sweep")
def sweep() -> None:
    services.sweep()
