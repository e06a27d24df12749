"""Periodic tasks of the monitoring."""

from celery import shared_task

from apps.monitoring.history import sampling


@shared_task
def take_samples() -> None:
    sampling.take_samples()
