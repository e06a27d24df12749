"""Why a worker stops before its task is done."""


class LeaseLost(Exception):
    """Another worker holds the task now, or it was ended or deleted: write nothing more."""


class TaskCancelled(Exception):
    """Someone asked for the task to stop."""
