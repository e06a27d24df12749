"""Errors of this room that are not a model server's own (those are in `apps.llm.errors`)."""

from apps.core.errors import DomainError


class FallbackRefused(DomainError):
    """The server cannot stand in for the default. The message says why."""

    code = "fallback_refused"


class NoServer(DomainError):
    """No server was chosen for this use. The message says where to choose one."""

    status = 503
    code = "no_server"
