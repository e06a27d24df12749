"""What cannot be done with a conversation now."""


class ChatError(Exception):
    """What was asked for cannot be done. The message says what to do."""

    code = "chat_error"
