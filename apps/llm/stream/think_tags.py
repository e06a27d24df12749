"""A thought that a server leaves in the text of an answer, told apart as it streams (pure)."""

from collections.abc import Iterator

from apps.llm.events import Event, Reasoning, Token

OPEN, CLOSE = "<think>", "</think>"


class ThinkTags:
    """Takes an answer's text piece by piece. What may still be a part of a tag is held back.

    Only an answer that begins with the tag has a thought: later it is what the model writes about.
    """

    def __init__(self) -> None:
        self._held = ""
        self._tag = OPEN
        """The one that may come next; "" when none can any more."""
        self._is_between = False
        """The thought has ended and the answer not begun."""

    def take(self, text: str) -> Iterator[Event]:
        if not self._tag:
            if self._is_between:
                text = text.lstrip()
                self._is_between = not text
            if text:
                yield Token(text)
            return
        self._held += text
        if self._tag == OPEN:
            begun = self._held.lstrip()
            if OPEN.startswith(begun):
                return
            if not begun.startswith(OPEN):
                yield from self._let_go()
                return
            self._held, self._tag = begun.removeprefix(OPEN), CLOSE
        thought, close, answer = self._held.partition(CLOSE)
        if close:
            self._held, self._tag, self._is_between = "", "", True
            if thought:
                yield Reasoning(thought)
            yield from self.take(answer)
            return
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if thought.endswith(CLOSE[:n])), 0)
        if said := thought[: len(thought) - keep]:
            yield Reasoning(said)
        self._held = thought[len(said) :]

    def end(self) -> Iterator[Event]:
        """What was held back: nothing more comes."""
        held, self._held = self._held, ""
        if held:
            yield Reasoning(held) if self._tag == CLOSE else Token(held)

    def _let_go(self) -> Iterator[Event]:
        self._tag = ""
        yield from self.end()
