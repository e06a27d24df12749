"""Separates thinking from an answer's text where the server leaves it in. Pure."""

from collections.abc import Iterator

from apps.llm.events import Event, Reasoning, Token

OPEN, CLOSE = "<think>", "</think>"


class ThinkTags:
    """Takes an answer's text piece by piece. Text that may be a part of a tag is held back.

    Only a tag at the beginning opens a thought: later the model writes about the tag.
    """

    def __init__(self) -> None:
        self._held = ""
        self._tag = OPEN
        """The tag that may come next; "" when none can any longer."""
        self._is_between = False
        """The thought has ended and the answer has not begun."""

    def feed(self, text: str) -> Iterator[Event]:
        """Yield the text that is certain now, as reasoning or as tokens."""
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
                yield from self._release()
                return
            self._held, self._tag = begun.removeprefix(OPEN), CLOSE
        thought, close, answer = self._held.partition(CLOSE)
        if close:
            self._held, self._tag, self._is_between = "", "", True
            if thought:
                yield Reasoning(thought)
            yield from self.feed(answer)
            return
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if thought.endswith(CLOSE[:n])), 0)
        if said := thought[: len(thought) - keep]:
            yield Reasoning(said)
        self._held = thought[len(said) :]

    def end(self) -> Iterator[Event]:
        """Yield the text held back: the answer has ended."""
        held, self._held = self._held, ""
        if held:
            yield Reasoning(held) if self._tag == CLOSE else Token(held)

    def _release(self) -> Iterator[Event]:
        self._tag = ""
        yield from self.end()
