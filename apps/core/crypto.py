"""Secrets of other systems, encrypted with a key derived from this site's own."""

import base64
from functools import cache, lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class SecretLost(Exception):
    """The text was encrypted under another SECRET_KEY and cannot be read any more."""


@cache
def _fernet_of(secret: str) -> Fernet:
    derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"workbench.secrets")
    return Fernet(base64.urlsafe_b64encode(derive.derive(secret.encode())))


# A quarter of a millisecond with every question else, and clients have the keys in memory anyway.
@lru_cache(maxsize=100)
def _decrypted(secret: str, cipher: str) -> str:
    return _fernet_of(secret).decrypt(cipher.encode()).decode()


def encrypt(plain: str) -> str:
    return _fernet_of(settings.SECRET_KEY).encrypt(plain.encode()).decode() if plain else ""


def decrypt(cipher: str) -> str:
    """Raises:
    SecretLost: SECRET_KEY has changed since.
    """
    try:
        return _decrypted(settings.SECRET_KEY, cipher) if cipher else ""
    except InvalidToken as error:
        raise SecretLost(
            "SECRET_KEY has changed, so the stored key cannot be read. Enter the key again."
        ) from error
