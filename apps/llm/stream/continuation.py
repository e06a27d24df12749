"""What follows a begun answer, whether a server goes on from it or says it once more. Pure."""


class Rest:
    """Takes what a server writes after a begun text, piece by piece, and gives what is new of it.

    llama.cpp goes on from an assistant's message at the end of the prompt; some builds repeat that
    message first. What has come is held back for as long as it may be such a repetition.
    """

    def __init__(self, begun: str) -> None:
        self._begun = begun.strip()  # as templates do
        self._held = ""

    def take(self, piece: str) -> str:
        """What is new now; "" while that cannot be told."""
        if not self._begun:
            return piece
        self._held += piece
        if self._begun.startswith(self._held.lstrip()):
            return ""
        return self._let_go()

    def end(self) -> str:
        """What was held back and is no repetition: the answer ended before that could be told."""
        return self._let_go()

    def _let_go(self) -> str:
        said, begun = self._held, self._begun
        self._held = self._begun = ""
        is_repetition = said.lstrip().startswith(begun)
        return said.lstrip().removeprefix(begun) if is_repetition else said
