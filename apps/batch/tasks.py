"""Waking the pumps. A message that is lost or comes twice changes nothing."""

import logging

from django.db import transaction
from redis.exceptions import RedisError

from apps.batch import presence

log = logging.getLogger(__name__)


def wake(server_id: int | None) -> None:
    """Has a pump look after the current transaction. Without Redis one does a little later."""
    if server_id is not None:
        transaction.on_commit(lambda: _call(server_id))


def _call(server_id: int) -> None:
    try:
        presence.call(server_id)
    except (RedisError, OSError) as error:
        log.warning("No message could be sent, the job starts a little later: %s", error)
