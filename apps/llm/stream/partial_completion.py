"""The beginning of an answer, from which a server continues it. Pure."""

from dataclasses import dataclass

from apps.llm.chat_request import ChatRequest
from apps.llm.stream.continuation import EchoStripper
from apps.llm.stream.sse_reader import WholeAnswer

# A shorter beginning of an answer is generated again: that costs nothing, and what follows could
# begin like it without being an echo of it.
MIN_PARTIAL_CHARACTERS = 20


@dataclass(slots=True)
class PartialCompletion:
    """The beginning of an answer whose request was closed before its end."""

    text: str = ""
    tokens: int = 0

    def rest_of(self, request: ChatRequest) -> ChatRequest:
        """Return the request for the part of its answer that is missing here."""
        return request.continued_from(self.text, self.tokens) if self.text else request

    def joined_with(self, answer: WholeAnswer, *, is_complete: bool = False) -> str:
        """Return this text and the answer that continues it, without the echo between them."""
        echo = EchoStripper(self.text)
        rest = echo.feed("".join(answer.text))
        return self.text + rest + (echo.end() if is_complete else "")

    def extend(self, answer: WholeAnswer) -> None:
        """Add what was received, as far as a server can continue from it."""
        if answer.reasoning:
            return  # no server continues a thought
        # Templates strip the end of a message: the model writes that part again.
        text = self.joined_with(answer).rstrip()
        if len(text) >= MIN_PARTIAL_CHARACTERS:
            self.text, self.tokens = text, self.tokens + len(answer.text)
