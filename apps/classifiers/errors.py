"""Why a classifier cannot be trained, asked, read or written. Each message is for a person."""


class CannotTrain(Exception):
    """The data does not allow it. The message says what is missing and where."""


class NotReady(Exception):
    """The classifier has not been trained yet."""


class ModelChanged(Exception):
    """Another embedding model is behind the server than the one it was trained with."""


class BadArtefact(Exception):
    """The stored classifier is missing or damaged. The message says what to do."""


class NoRowResults(Exception):
    """It was trained before rows were kept, or its file is gone."""


class BadFile(Exception):
    """The file cannot be used. The message says why."""


class UnknownLabel(Exception):
    """The classifier was not trained on this label; the message names those it knows."""


class TooLarge(Exception):
    """The file is larger than an upload may be."""


class NoColumn(Exception):
    """There is no such column; the message names those there are."""


class WorkerDied(Exception):
    """It ended too often while this file was worked."""


class TooManyRows(Exception):
    """The dataset is too large to compare all rows with all others."""
