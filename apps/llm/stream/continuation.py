"""Strips the echo of a partial answer from its continuation. Pure."""


class EchoStripper:
    """Takes the text that a server writes after a partial answer, and returns what is new in it.

    llama.cpp continues an assistant's message at the end of the prompt; some builds repeat that
    message first. Text is held back for as long as it may be such an echo.
    """

    def __init__(self, partial: str) -> None:
        self._partial = partial.strip()  # as chat templates do
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the new text; "" while the piece may still be a part of the echo."""
        if not self._partial:
            return piece
        self._held += piece
        if self._partial.startswith(self._held.lstrip()):
            return ""
        return self._release()

    def end(self) -> str:
        """Return the text held back: the answer ended before it was certainly an echo."""
        return self._release()

    def _release(self) -> str:
        text, partial = self._held, self._partial
        self._held = self._partial = ""
        is_echo = text.lstrip().startswith(partial)
        return text.lstrip().removeprefix(partial) if is_echo else text
