"""Errors of the chat that people can act on."""

from apps.core.errors import DomainError


class ChatError(DomainError):
    """The request is not possible. The message says what to do."""

    code = "chat_error"


class Conflict(ChatError):
    """The conversation has changed meanwhile."""

    status = 409


class StillAnswering(Conflict):
    code = "still_answering"

    def __init__(self) -> None:
        super().__init__("An answer is still being generated. Wait for it, or stop it.")


class MessageDeleted(Conflict):
    code = "message_removed"

    def __init__(self) -> None:
        super().__init__("This part of the chat was deleted meanwhile. Undo that, or ask again.")


class TemporaryChat(ChatError):
    code = "temporary_chat"

    def __init__(self) -> None:
        super().__init__("This chat is temporary. Keep it first, then share or export it.")


class EmptyMessage(ChatError):
    code = "empty_message"

    def __init__(self) -> None:
        super().__init__("The message is empty.")


class MessageTooLong(ChatError):
    code = "message_too_long"

    def __init__(self, characters: int, limit: int) -> None:
        super().__init__(
            f"The message has {characters:,} characters. The limit is {limit:,}. Shorten it."
        )


class WrongParent(ChatError):
    code = "wrong_parent"

    def __init__(self) -> None:
        super().__init__("`parent` must be a finished answer in the same conversation.")


class NothingToContinue(ChatError):
    code = "nothing_to_continue"

    def __init__(self) -> None:
        super().__init__("There is no text to continue from. Regenerate the answer instead.")


class NotAQuestion(ChatError):
    code = "not_a_question"

    def __init__(self) -> None:
        super().__init__("Only your own messages can be edited.")


class NotWaiting(Conflict):
    code = "not_waiting"

    def __init__(self) -> None:
        super().__init__("This call is no longer waiting for approval.")


class CannotRunAgain(Conflict):
    code = "not_cut_off"

    def __init__(self) -> None:
        super().__init__("This call cannot be run again. It is running or already has a result.")
