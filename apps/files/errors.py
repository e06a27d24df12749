"""Errors of this room, to be shown to the person who sent the file."""


class FormatError(Exception):
    """The file as a whole cannot be read. The message says what to do."""
