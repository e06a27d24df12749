"""Errors of conversations and their messages."""

from apps.core.errors import DomainError


class ChatError(DomainError):
    """The request is not possible. The message says what to do."""

    code = "chat_error"
