"""Estimates of prompt sizes in tokens, from bytes and what the server has counted. Pure."""

from collections.abc import Sequence

from apps.chat.prompt.messages import CountedPrompt, PromptMessage

# Before the server has counted anything: a safe guess for English is more bytes per token.
TOKENS_PER_BYTE = 1 / 3
TEMPLATE_TOKENS = 8  # what a chat template puts around each message


def estimate(
    head: int, messages: Sequence[PromptMessage], start: int, counted: CountedPrompt | None
) -> int:
    """Return the tokens of the messages from `start` on, plus `head` bytes before them."""
    kept = messages[start:]
    if counted is None:
        return tokens_of(head + size_of(kept), len(kept) + 1, TOKENS_PER_BYTE)
    rate = token_rate(head, messages, counted)
    if start == index_of(messages, counted.cut_before_message):
        new = messages[index_of(messages, counted.upto) + 1 :]
        return counted.tokens + tokens_of(size_of(new), len(new), rate)
    return tokens_of(head + size_of(kept), len(kept) + 1, rate)


def token_rate(
    head: int, messages: Sequence[PromptMessage], counted: CountedPrompt | None
) -> float:
    """Return the tokens per byte of the prompt that the server counted."""
    if counted is None:
        return TOKENS_PER_BYTE
    start = index_of(messages, counted.cut_before_message)
    size = head + size_of(messages[start : index_of(messages, counted.upto) + 1])
    return counted.tokens / size if size else TOKENS_PER_BYTE


def tokens_of(size: int, messages: int, rate: float = TOKENS_PER_BYTE) -> int:
    """Return the tokens of `size` bytes in a number of messages."""
    return round(size * rate) + messages * TEMPLATE_TOKENS


def size_of(messages: Sequence[PromptMessage]) -> int:
    """Return bytes in UTF-8: closer to tokens than characters are, in scripts other than Latin.

    An image counts as a text with its number of tokens.
    """
    image_tokens = sum(message.image_tokens for message in messages)
    calls = (call.name + call.arguments for message in messages for call in message.calls)
    text = sum(text_bytes(message.content) for message in messages) + sum(map(text_bytes, calls))
    return text + round(image_tokens / TOKENS_PER_BYTE)


def text_bytes(text: str) -> int:
    return len(text.encode())


def index_of(messages: Sequence[PromptMessage], message_id: int | None) -> int:
    """Return the position of a message; 0 if it is not there."""
    return next((i for i, message in enumerate(messages) if message.id == message_id), 0)
