"""Tokens of ours: what is kept of them."""

import hashlib


def digest(token: str) -> str:
    """SHA-256 of a token of ours, hex: of 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
