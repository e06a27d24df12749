"""Periodic tasks of the vectors. Not durable tasks: what a run leaves, the next one deletes."""

from celery import shared_task

from apps.embeddings import retention


@shared_task
def sweep_vectors() -> None:
    retention.delete_expired()
