"""The tables of this room: classifiers, their runs, file predictions and chat tests."""

from apps.classifiers.models.background_record import BackgroundRecord, TaskKind
from apps.classifiers.models.chat_test import ChatTest
from apps.classifiers.models.classifier import Classifier
from apps.classifiers.models.file_prediction import FilePrediction, FileStatus
from apps.classifiers.models.run import (
    ACTIVE,
    LARGE_FIELDS,
    STAGES,
    ReviewReason,
    Run,
    Status,
)

__all__ = [
    "ACTIVE",
    "LARGE_FIELDS",
    "STAGES",
    "BackgroundRecord",
    "ChatTest",
    "Classifier",
    "FilePrediction",
    "FileStatus",
    "ReviewReason",
    "Run",
    "Status",
    "TaskKind",
]
