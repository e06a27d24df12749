"""Words of a text, and letters of scripts that put no space between words."""

import re

from apps.similarity.text_key import normalise_text

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def split_words(text: str) -> list[str]:
    """Return the words of the normalised text."""
    return re.findall(r"\w+", normalise_text(text))


def split_unspaced_letters(text: str) -> list[str]:
    """Return the letters of scripts that put no space between words."""
    return _UNSPACED.findall(normalise_text(text))


def count_letters(text: str) -> tuple[int, int]:
    """Count the letters, and of these the ones of scripts that put no space between words."""
    unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
    return sum(map(str.isalpha, text)), unspaced
