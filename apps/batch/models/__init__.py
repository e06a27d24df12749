"""Background work on slots of model servers: batches, their rows and servers, pumps' leases.

The database holds the whole state of a job. Messages through Redis only wake a pump.
"""

from apps.batch.models.batch import SLOWED_DOWN, Batch, BatchServer
from apps.batch.models.item import Item
from apps.batch.models.pump_lease import PumpLease
from apps.batch.models.statuses import ACTIVE, FINISHED, OPEN, BatchStatus, ItemStatus
from apps.batch.models.throughput import ThroughputHistory

__all__ = [
    "ACTIVE",
    "FINISHED",
    "OPEN",
    "SLOWED_DOWN",
    "Batch",
    "BatchServer",
    "BatchStatus",
    "Item",
    "ItemStatus",
    "PumpLease",
    "ThroughputHistory",
]
