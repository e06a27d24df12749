"""Models of datasets: rows, revisions, rejections, uploads, queues."""

from apps.datasets.models.changes import Change, Revision
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
from apps.datasets.models.task_kinds import TaskKind
from apps.datasets.models.uploads import Upload, UploadedPart, UploadState

__all__ = [
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
    "TaskKind",
    "Upload",
    "UploadState",
    "UploadedPart",
]
