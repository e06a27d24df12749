"""What Celery beat starts, and every how many seconds.

The database is the truth and a message only wakes: beat wakes again whatever lost its message.
"""

BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "sweep-tasks": {"task": "apps.work.tasks.sweep", "schedule": 30.0},
    "purge-chat": {"task": "apps.chat.tasks.purge", "schedule": 3600.0},
    "delete-temporary-chats": {"task": "apps.chat.tasks.delete_temporary", "schedule": 300.0},
    "remove-people": {"task": "apps.core.tasks.remove_people", "schedule": 300.0},
    "take-samples": {
        "task": "apps.monitoring.tasks.take_samples",
        "schedule": 30.0,
        "options": {"expires": 25.0},  # a worker that was busy takes one sample, not all it missed
    },
    "store-usage": {
        "task": "apps.gateway.tasks.store_usage",
        "schedule": 30.0,
        "options": {"expires": 25.0},
    },
    "remove-expired-files": {
        "task": "apps.gateway.tasks.remove_expired_files",
        "schedule": 3600.0,
    },
    "finish-batches": {
        "task": "apps.gateway.tasks.finish_batches",
        "schedule": 10.0,
        "options": {"expires": 9.0},
    },
    "sweep-vectors": {"task": "apps.embeddings.tasks.sweep_vectors", "schedule": 3600.0},
}
