"""The Celery application. Tasks live in each app's `tasks.py`; what they do is in its services."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

app = Celery("workbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def _load_sdk(**_: Any) -> None:
    """Before the worker forks: its processes then share it, and no row waits for it."""
    from apps.llm.client import load_sdk

    load_sdk()
