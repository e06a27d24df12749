"""An upper bound of the tokens in a text, where no tokenizer is at hand (pure)."""

ASCII_CHARACTERS = 3  # a token: English has about four, code and numbers fewer
OTHER_BYTES = 2  # a token: Chinese, Japanese and Thai have three bytes a character


def max_tokens_of(text: str) -> int:
    """Tokens at most, for text in any script."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = 0 if text.isascii() else len(text.encode("utf-8", "replace")) - plain
    return plain // ASCII_CHARACTERS + others // OTHER_BYTES + 1
