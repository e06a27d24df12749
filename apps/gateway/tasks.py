"""Periodic tasks of the gateway."""

from celery import shared_task

from apps.gateway.batches import lifecycle
from apps.gateway.files import store as files
from apps.gateway.usage import store


@shared_task
def store_usage() -> None:
    """Store what programs used since the last time."""
    store.store_usage()


@shared_task
def remove_expired_files() -> None:
    """Remove files of programs whose time is over, the jobs of their batches, and strays."""
    files.remove_expired_files()
    files.remove_strays()
    lifecycle.delete_old_jobs()


@shared_task
def finish_batches() -> None:
    """Write the results of batches that are done or whose time is over."""
    lifecycle.finish_batches()
