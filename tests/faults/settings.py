"""The workbench's settings with a broker that soon gives a message to somebody else as well."""

from workbench.settings import *  # noqa: F403

CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 10}  # seconds; Celery's own is an hour
