"""Models of datasets: rows, revisions, rejections, uploads, queues."""

from apps.datasets.models.changes import BulkChange, Change, Revision
from apps.datasets.models.datasets import (
    Dataset,
    DatasetQuerySet,
    DatasetState,
    Example,
    NearDuplicate,
    Rejection,
    Split,
)
from apps.datasets.models.queues import Queue, QueueItem
from apps.datasets.models.uploads import IN_PROGRESS, Upload, UploadState

__all__ = [
    "IN_PROGRESS",
    "BulkChange",
    "Change",
    "Dataset",
    "DatasetQuerySet",
    "DatasetState",
    "Example",
    "NearDuplicate",
    "Queue",
    "QueueItem",
    "Rejection",
    "Revision",
    "Split",
    "Upload",
    "UploadState",
]
