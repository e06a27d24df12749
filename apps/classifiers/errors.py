"""Why a classifier cannot be trained, asked, read or written. Each message is for a person."""

from apps.core.errors import DomainError


class CannotTrain(DomainError):
    """The data does not allow it. The message says what is missing and where."""

    code = "cannot_train"


class NotReady(DomainError):
    """The classifier has not been trained yet."""

    status = 409
    code = "not_ready"


class ModelChanged(DomainError):
    """Another embedding model is behind the server than the one it was trained with."""

    status = 409
    code = "model_changed"


class BadArtefact(DomainError):
    """The stored classifier is missing or damaged. The message says what to do."""

    status = 503
    code = "no_artefact"


class NoRowResults(DomainError):
    """It was trained before rows were kept, or its file is gone."""

    status = 409
    code = "no_evidence"


class BadFile(DomainError):
    """The file cannot be used. The message says why."""


class UnknownLabel(DomainError):
    """The classifier was not trained on this label; the message names those it knows."""


class TooLarge(DomainError):
    """The file is larger than an upload may be."""

    status = 413
    code = "too_large"


class NoColumn(DomainError):
    """There is no such column; the message names those there are."""


class WorkerDied(Exception):
    """It ended too often while this file was worked."""


class TooManyRows(Exception):
    """The dataset is too large to compare all rows with all others."""
